// Package unit_test holds the units in deploy/systemd to what systemd takes.
package unit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// units are those in deploy/systemd.
func units(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.Len(t, files, 2)
	return files
}

func TestSystemdTakesTheUnits(t *testing.T) {
	for _, file := range units(t) {
		require.Empty(t, verify(t, file, func(unit string) string { return unit }), file)
	}
}

func TestSystemdRefusesAMistakeInAUnit(t *testing.T) {
	for _, file := range units(t) {
		for from, to := range map[string]string{
			"NoNewPrivileges=yes": "NoNewPrivileges=often",
			"StateDirectory":      "StateFolder",
			"bin/elect run":       "bin/elected run",
		} {
			require.NotEmpty(t, verify(t, file, func(unit string) string {
				require.Contains(t, unit, from)
				return strings.ReplaceAll(unit, from, to)
			}), to)
		}
	}
}

// verify returns the complaints of systemd-analyze about the changed unit, on a host
// where elect is installed.
func verify(t *testing.T, file string, change func(string) string) (complaints string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	root := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write("etc/systemd/system/"+filepath.Base(file), change(string(text)), 0o600)
	write("usr/local/bin/elect", "#!/bin/true\n", 0o700)
	for _, target := range []string{"basic", "multi-user", "network-online", "shutdown", "sysinit"} {
		write("etc/systemd/system/"+target+".target", "[Unit]\nDescription="+target+"\n", 0o600)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "--root="+root, "--man=no", "verify", strings.Replace(filepath.Base(file), "@", "@billing", 1)).CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, "install systemd (Debian, Ubuntu: apt-get install systemd)")
	}
	return string(out)
}
