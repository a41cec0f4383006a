package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAptWouldInstallIsRead(t *testing.T) {
	require.Equal(t, []string{"libjemalloc2", "redis-server"}, toInstall(
		"Reading package lists...\nThe following NEW packages will be installed:\n  libjemalloc2 redis-server\n"+
			"Inst libjemalloc2 (5.3.0-1 Debian:12 [amd64])\nInst redis-server (5:7.0.15 Debian:12 [amd64])\nConf redis-server (5:7.0.15)\n"))
}

func TestAWrapperTurnsIntoTheProgramWithTheLibrariesBesideIt(t *testing.T) {
	root, bin := filepath.Join(t.TempDir(), "a root"), t.TempDir()
	for _, folder := range []string{"usr/bin", "usr/lib/chromium", "usr/lib/x86_64-linux-gnu/pulseaudio"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	program := "#!/bin/sh\necho \"$LD_LIBRARY_PATH|$*\"\n"
	for _, name := range []string{"tool", "mariadbd"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "usr/bin", name), []byte(program), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/chromium", "browser"), []byte(program), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/chromium", "resources.pak"), []byte("no program"), 0o600))
	require.NoError(t, wrap(root, bin))
	require.NoFileExists(t, filepath.Join(bin, "resources.pak"))
	libraries := root + "/usr/lib/x86_64-linux-gnu:" + root + "/usr/lib/x86_64-linux-gnu/pulseaudio"
	for name, want := range map[string]string{
		"tool": "--x two words", "mariadbd": "--x two words --basedir=" + root + "/usr", "browser": "--x two words",
	} {
		out, err := exec.Command(filepath.Join(bin, name), "--x", "two words").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, libraries+"|"+want+"\n", string(out))
	}
}
