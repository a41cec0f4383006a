package filekv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/kv"
)

func TestOnAFullDiskNothingIsLostAndRecordsCanBeDeleted(t *testing.T) {
	s := open(t, t.TempDir())
	p := start(t, command(t, "full", filepath.Dir(s.Lives()), "n", ample))
	for _, prefix := range []string{"create:", "refresh:"} {
		said := p.says(prefix)
		require.Contains(t, said, unix.EFBIG.Error())
		for _, outcome := range []error{kv.ErrHeld, kv.ErrStale, kv.ErrInvalid, kv.ErrVacant} {
			require.NotContains(t, said, outcome.Error())
		}
	}
	require.Equal(t, "true <nil>", p.says("unharmed:"))
	require.Equal(t, "<nil>", p.says("new:"))
	require.Equal(t, "<nil>", p.says("delete:"))
	require.Contains(t, p.says("create again:"), unix.EFBIG.Error())
	require.Equal(t, "0 <nil>", p.says("left behind:"))
	require.Equal(t, "true <nil>", p.says("after it was freed:"))
}

func TestTheUmaskHidesNothingFromThoseWhoShareTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o770|os.ModeSetgid))
	p := start(t, command(t, "umask", dir, "n", ample))
	require.Equal(t, "<nil>", p.says("created:"))
	seen := 0
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		require.NoError(t, err)
		want := os.FileMode(0o660)
		if info.IsDir() {
			want = 0o770 | os.ModeSetgid
		}
		require.Equal(t, want, info.Mode()&^os.ModeDir, path)
		seen++
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1+3+1+2+1, seen, "the directory, three folders in it, a safe, its head and page, a life")
}

func TestAMissingDirectoryIsCreatedForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "election")
	open(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestADirectoryThatCannotBeUsedIsRefusedWithTheReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dangling := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("/nowhere/at/all", dangling))
	for dir, reason := range map[string]string{
		"":                    "no directory given",
		file:                  "not a directory",
		file + "/below":       "not a directory",
		dangling:              "file exists",
		"/proc/election-test": "no such file or directory",
	} {
		_, err := filekv.New(dir, nil)
		require.ErrorContains(t, err, reason, "%q", dir)
		require.ErrorContains(t, err, "filekv: open", "%q", dir)
	}
}

// Root may write everywhere, so the process becomes nobody if it is root.
func TestAnUnwritableDirectoryIsRefusedWithTheReason(t *testing.T) {
	dir, err := os.MkdirTemp("", "filekv") //nolint:usetesting // nobody cannot enter the parent of t.TempDir
	require.NoError(t, err)
	store := filepath.Join(dir, "store")
	t.Cleanup(func() {
		for _, path := range []string{dir, store} {
			_ = os.Chmod(path, 0o700) // it may be gone
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	temps := open(t, store).Temps()
	refusal := func() string {
		t.Helper()
		return start(t, command(t, "nobody", store, "n", ample)).says("error: filekv: open")
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(temps, 0o555))
	require.NoError(t, os.Chmod(store, 0o555))
	said := refusal()
	require.Contains(t, said, "it is not writable: open "+temps)
	require.Contains(t, said, "permission denied")

	require.NoError(t, os.Chmod(store, 0o700))
	require.NoError(t, os.RemoveAll(store))
	require.NoError(t, os.Chmod(dir, 0o555))
	require.Contains(t, refusal(), "mkdir "+store+": permission denied")
}

// descriptors returns what the process has open below dir, and its inotify
// instances.
func descriptors(t testing.TB, dir string) (open, inotify int) {
	t.Helper()
	for _, fd := range files(t, "/proc/self/fd") {
		path, err := os.Readlink("/proc/self/fd/" + fd)
		if err != nil {
			continue // closed in the meantime
		}
		if strings.HasPrefix(path, dir) {
			open++
		}
		if strings.Contains(path, "inotify") {
			inotify++
		}
	}
	return open, inotify
}

func TestWatchesShareOneInstanceAndEverythingComesBack(t *testing.T) {
	defer leak.Before().Check(t)
	const names, each = 20, 5
	dir := t.TempDir()
	s := open(t, dir)
	_, inotify := descriptors(t, dir)
	var recs []kv.Record
	for i := range names {
		rec, err := s.Create(t.Context(), fmt.Sprint(i), signed(ample))
		require.NoError(t, err)
		recs = append(recs, rec)
	}
	n, now := descriptors(t, dir)
	require.Equal(t, 1, n, "the life file")
	require.Equal(t, inotify, now)

	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	seen := make(chan kv.Record, names*each*2)
	for i := range names * each {
		watches.Go(func() {
			for rec, err := range s.Watch(ctx, fmt.Sprint(i%names)) {
				if err == nil {
					seen <- rec
				}
			}
		})
	}
	for range names * each {
		<-seen
	}
	n, now = descriptors(t, dir)
	require.LessOrEqual(t, n, 2, "the life file, felt once more")
	require.Equal(t, inotify+1, now)

	cancel()
	watches.Wait()
	for i, rec := range recs {
		require.NoError(t, s.Delete(t.Context(), fmt.Sprint(i), rec))
	}
	n, now = descriptors(t, dir)
	require.Zero(t, n)
	require.Equal(t, inotify, now)
	require.Empty(t, files(t, s.Lives()))
	require.Empty(t, files(t, s.Temps()))
}

// Processor time is what a watch of a file costs, as there are no requests.
func TestWaitingCostsLittle(t *testing.T) {
	const names, span = 200, 2 * time.Second
	dir := t.TempDir()
	holder, s := open(t, dir), open(t, dir)
	for i := range names {
		_, err := holder.Create(t.Context(), fmt.Sprint(i), signed(ample))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	ready := make(chan struct{}, names)
	for i := range names {
		watches.Go(func() {
			for range s.Watch(ctx, fmt.Sprint(i)) {
				ready <- struct{}{}
			}
		})
	}
	for range names {
		<-ready
	}
	began := time.Now()
	before := processorTime(t)
	time.Sleep(span)
	spent, passed := processorTime(t)-before, time.Since(began)
	cancel()
	watches.Wait()
	t.Logf("%d watches took %v of processor time in %v", names, spent, passed)
	require.Less(t, spent, passed/4)
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
