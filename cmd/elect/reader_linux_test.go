package main

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// sees runs elect with the arguments and returns its exit status.
func sees(t *testing.T, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	p := startCommand(t, cmd)
	status = p.status(t)
	return status, p.out.String(), p.err.String()
}

func TestReadersCreateNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	for name, env := range map[string][]string{
		"default": {"ELECT_STORE=", "XDG_STATE_HOME=" + missing},
		"file":    {"ELECT_STORE=file://" + missing},
		"sqlite":  {"ELECT_STORE=sqlite://" + missing},
		"folder":  {"ELECT_STORE=sqlite://" + missing + "/db"},
	} {
		status, stdout, stderr := sees(t, env, elect, "status", "x")
		require.Equal(t, 1, status, name)
		require.Contains(t, stdout, "vacant", name)
		require.Contains(t, stderr, "does not exist yet", name)
		cmd := exec.Command(elect, "watch", "x")
		cmd.Env = append(os.Environ(), env...)
		p := startCommand(t, cmd)
		require.Eventually(t, func() bool { return strings.Contains(p.out.String(), "nobody leads") }, time.Minute, 20*time.Millisecond, name)
		require.NoError(t, p.Process.Signal(os.Interrupt))
		p.status(t)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries, name)
	}
}

func TestAWatchSeesTheFirstLeaderOfAStoreThatWasNotThere(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"file://", "sqlite://"} {
		url := scheme + filepath.Join(t.TempDir(), "store")
		watch := start(t, "watch", "--store", url, "x")
		require.Eventually(t, func() bool { return strings.Contains(watch.out.String(), "nobody leads") }, time.Minute, 20*time.Millisecond)
		start(t, "run", "--store", url, "--id", "first", "x", "--", "sleep", "600")
		require.Eventually(t, func() bool { return strings.Contains(watch.out.String(), "first") }, time.Minute, 20*time.Millisecond, url)
	}
}

// readOnly has a command run that cannot write below a directory.
func readOnly(dir string, args ...string) []string {
	return append([]string{
		"unshare", "--map-root-user", "--mount", "sh", "-c",
		`mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"`, dir,
	}, args...)
}

func TestReadersNeedNoWriteAccess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := filekv.New(filepath.Join(dir, "file"), nil)
	require.NoError(t, err)
	leader := kv.Record{Signature: "s", TTL: time.Hour}
	_, err = store.Create(t.Context(), "x", leader)
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db"))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, sqlkv.Migrate(t.Context(), db, sqlkv.SQLite, nil))
	_, err = sqlkv.New(db, sqlkv.SQLite, nil).Create(t.Context(), "x", leader)
	require.NoError(t, err)
	for _, url := range []string{"file://" + dir + "/file", "sqlite://" + dir + "/db"} {
		status, stdout, stderr := sees(t, nil, readOnly(dir, elect, "status", "--store", url, "x")...)
		require.Zero(t, status, "%s%s", stdout, stderr)
		require.Empty(t, stderr)
	}
	status, _, stderr := sees(t, nil, readOnly(dir, elect, "run", "--store", "file://"+dir+"/file", "y", "--", "true")...)
	require.Equal(t, 125, status, "this is what a writer is told")
	require.Contains(t, stderr, "it is not writable")
}

// TestADirectoryThatIsRemovedEndsTheTermAtOnce has a TTL that nothing here waits for.
func TestADirectoryThatIsRemovedEndsTheTermAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, "run", "--store", "file://"+dir, "--ttl", "5m", "--grace", "1s", "x", "--", "sh", "-c", "echo token $ELECTION_TOKEN; exec sleep 600")
	tokens := func() int { return strings.Count(p.out.String(), "token ") }
	require.Eventually(t, func() bool { return tokens() == 1 }, time.Minute, 20*time.Millisecond)
	require.NoError(t, os.Rename(dir, dir+"-away")) // in one step, while others write
	require.NoError(t, os.RemoveAll(dir+"-away"))
	require.Eventually(t, func() bool { return tokens() == 2 }, time.Minute, 20*time.Millisecond)
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	require.Greater(t, lines[1], lines[0], "tokens grow")
	require.DirExists(t, dir)
}
