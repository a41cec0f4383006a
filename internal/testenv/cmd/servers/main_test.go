package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv/install"
)

func TestRedisInPathIsEnough(t *testing.T) {
	onlyInPath(t, "redis-server", "exit 1")
	var out, log strings.Builder
	require.NoError(t, provideRedis(t.Context(), &out, &log))
	require.Empty(t, out.String())
}

func TestRedisThatRunsAlreadyIsEnough(t *testing.T) {
	onlyInPath(t, "nothing", "exit 1")
	t.Setenv("ELECTION_TEST_REDIS", "192.0.2.1:6379")
	var out, log strings.Builder
	require.NoError(t, provideRedis(t.Context(), &out, &log))
	require.Empty(t, out.String())
}

func TestMissingRedisIsAnErrorThatSaysWhatToInstall(t *testing.T) {
	onlyInPath(t, "docker", "exit 1")
	var out, log strings.Builder
	err := provideRedis(t.Context(), &out, &log)
	require.ErrorIs(t, err, install.ErrNoRedis)
	require.ErrorContains(t, err, "apt-get install redis-server")
	require.Empty(t, out.String())
}

// There is no engine on every machine, so a script stands in for docker here: it
// knows the container's port once the container has been run.
func TestRedisInAContainerIsNamedInTheEnvironment(t *testing.T) {
	dir := onlyInPath(t, "docker", `case $1 in
info) exit 0 ;;
run) : > "${0%/*}/running" ;;
port) [ -e "${0%/*}/running" ] && echo 127.0.0.1:49153 ;;
esac`)
	for range 2 {
		var out, log strings.Builder
		require.NoError(t, provideRedis(t.Context(), &out, &log))
		require.Equal(t, "export ELECTION_TEST_REDIS=127.0.0.1:49153\n", out.String())
	}
	require.FileExists(t, filepath.Join(dir, "running"))
}

func TestMissingToolsOfRootAreNamed(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("they are of use to root on Linux only")
	}
	var log strings.Builder
	onlyInPath(t, "mount", "exit 1")
	require.NoError(t, provideTools(t.Context(), &log))
	require.Contains(t, log.String(), "install iproute2 nftables util-linux mount\n")
}

// onlyInPath makes a script the only command there is.
func onlyInPath(t *testing.T, name, script string) string {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	dir := t.TempDir()
	text := "#!" + sh + "\n" + script + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	t.Setenv("PATH", dir)
	t.Setenv("ELECTION_TEST_REDIS", "")
	return dir
}
