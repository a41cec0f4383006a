package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv/install"
)

func TestServerInPathIsEnough(t *testing.T) {
	onlyInPath(t, "redis-server", "exit 1")
	log, out, err := provided(t, redis)
	require.NoError(t, err)
	require.Regexp(t, `^found .*/redis-server\n$`, log)
	require.Empty(t, out)
}

func TestServerThatRunsAlreadyIsEnough(t *testing.T) {
	onlyInPath(t, "nothing", "exit 1")
	t.Setenv("ELECTION_TEST_REDIS", "192.0.2.1:6379")
	log, out, err := provided(t, redis)
	require.NoError(t, err)
	require.Equal(t, "using the server at ELECTION_TEST_REDIS\n", log)
	require.Empty(t, out)
}

func TestMissingServersAreAnErrorThatSaysWhatToInstall(t *testing.T) {
	onlyInPath(t, "docker", "exit 1")
	_, out, err := provided(t, redis, absent)
	require.ErrorIs(t, err, install.ErrNoRedis)
	require.ErrorContains(t, err, "apt-get install redis-server")
	require.ErrorIs(t, err, errAbsent, "and of each of them")
	require.Empty(t, out)
}

// There is no engine on every machine, so a script stands in for docker here: it
// knows the container's port once the container has been run.
func TestServerInAContainerIsNamedInTheEnvironment(t *testing.T) {
	dir := onlyInPath(t, "docker", `case $1 in
info) exit 0 ;;
run) echo "$@" > "${0%/*}/running" ;;
port) [ -e "${0%/*}/running" ] && echo 127.0.0.1:49153 ;;
esac`)
	for range 2 {
		_, out, err := provided(t, redis)
		require.NoError(t, err)
		require.Equal(t, "export ELECTION_TEST_REDIS=127.0.0.1:49153\n", out)
	}
	ran, err := os.ReadFile(filepath.Join(dir, "running"))
	require.NoError(t, err)
	require.Equal(t, "run --detach --rm --name election-test-redis --publish 127.0.0.1::6379/tcp redis:7.4-alpine redis-server --save \n", string(ran))

	log, _, err := provided(t, absent)
	require.NoError(t, err)
	require.Equal(t, "tests will fail: there is none\n", log, "there is no container of it")
}

func TestEveryServerIsLookedFor(t *testing.T) {
	onlyInPath(t, "nothing", "exit 1")
	for _, variable := range []string{"ELECTION_TEST_REDIS", "ELECTION_TEST_POSTGRES", "ELECTION_TEST_MYSQL"} {
		t.Setenv(variable, "192.0.2.1:1")
	}
	log, _, err := provided(t, servers()...)
	require.ErrorIs(t, err, install.ErrNoPrometheus, "which no variable names")
	there := len(servers()) - 1
	if _, missing := install.PgBouncer(); missing != nil {
		require.ErrorIs(t, err, install.ErrNoPgBouncer, "nor this one")
		there--
	}
	require.Equal(t, there, strings.Count(log, "\n"), log)
}

func TestMissingToolsOfRootAreNamed(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("they are of use to root on Linux only")
	}
	var log strings.Builder
	dir := onlyInPath(t, "nothing", "exit 1")
	require.Empty(t, missingTools(&log), "there is nothing to get them with")
	require.Contains(t, log.String(), "install iproute2 nftables util-linux mount\n")

	log.Reset()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apt-get"), nil, 0o755))
	require.Equal(t, []string{"iproute2", "nftables", "util-linux", "mount"}, missingTools(&log))
	require.Empty(t, log.String())
}

var (
	errAbsent = errors.New("there is none")

	redis  = packaged{install.Redis, []string{"redis-server"}, "ELECTION_TEST_REDIS", &install.RedisContainer}
	absent = packaged{func() (string, error) { return "", errAbsent }, []string{"absent"}, "", nil}
)

// provided provides the servers, and returns what was said.
func provided(t *testing.T, all ...packaged) (log, out string, err error) {
	var l, o strings.Builder
	missing, _ := look(&l, all)
	err = contain(t.Context(), &o, &l, missing)
	return l.String(), o.String(), err
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
	t.Setenv("ELECTION_TEST_PACKAGES", t.TempDir())
	return dir
}
