package stores_test

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// A login, cron, a service with a bare environment, and sudo with somebody else's home.
func TestTheDefaultIsTheSameForAllProcessesOfAUser(t *testing.T) {
	me, err := user.LookupId(strconv.Itoa(os.Getuid()))
	require.NoError(t, err)
	want := "file://" + me.HomeDir + "/.local/state/elect"
	for what, vars := range map[string]map[string]string{
		"a login":             {"HOME": me.HomeDir, "XDG_RUNTIME_DIR": t.TempDir()},
		"cron":                {"HOME": me.HomeDir},
		"a bare environment":  {},
		"the root directory":  {"HOME": "/"},
		"another user's home": {"HOME": "/proc/sys/missing"},
		"a relative home":     {"HOME": "home"},
		"a relative state":    {"XDG_STATE_HOME": "state"},
	} {
		got, err := stores.DefaultToRead(env(vars))
		require.NoError(t, err, what)
		require.Equal(t, want, got, what)
	}
}

func TestTheDefaultIsInTheStateDirectoryOfTheHome(t *testing.T) {
	home := t.TempDir()
	url, err := stores.Default(env(map[string]string{"HOME": home, "XDG_RUNTIME_DIR": t.TempDir()}))
	require.NoError(t, err)
	require.Equal(t, "file://"+home+"/.local/state/elect", url)
	for _, dir := range []string{".local", ".local/state", ".local/state/elect"} {
		info, err := os.Stat(filepath.Join(home, dir))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
}

func TestTheDefaultToReadMakesNothing(t *testing.T) {
	dir := t.TempDir()
	url, err := stores.DefaultToRead(env(map[string]string{"XDG_STATE_HOME": dir}))
	require.NoError(t, err)
	require.Equal(t, "file://"+dir+"/elect", url)
	require.NoDirExists(t, filepath.Join(dir, "elect"))
}

func TestTheDefaultOfEarlierVersionsIsFound(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "elect", "safes"), 0o700))
	require.Equal(t, filepath.Join(dir, "elect"), stores.FormerDefault(env(map[string]string{"XDG_RUNTIME_DIR": dir})))
}
