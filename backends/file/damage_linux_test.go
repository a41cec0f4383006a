package filekv_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

// lastPage returns the path of the page that a safe's head names. Beside it may be the page of a
// write that is going on, and what others saw of the record.
func lastPage(t testing.TB, s *filekv.Store, name string) string {
	t.Helper()
	found := files(t, s.Folder(name))
	var pages []string
	for _, file := range found {
		if number, page, ok := strings.Cut(file, "."); ok && number != "seen" {
			pages = append(pages, page)
		}
	}
	require.Len(t, pages, 1, "a head")
	require.Contains(t, found, pages[0])
	return filepath.Join(s.Folder(name), pages[0])
}

// edit changes the last page of a safe in place.
func edit(t testing.TB, s *filekv.Store, name, old, new string) {
	t.Helper()
	path := lastPage(t, s, name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600))
}

// bootID returns the id of this boot.
func bootID(t testing.TB) string {
	t.Helper()
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	return strings.TrimSpace(string(id))
}

const otherBoot = "00000000-0000-4000-8000-000000000000"

// Nobody can tell a restart of the host from a container with a boot id of its own, by
// the page alone; unless the crash has torn it.
func TestARecordOfAnotherBootLivesForItsTTLFromTheFirstLook(t *testing.T) {
	const ttl = time.Second
	for name, after := range map[string]func(s *filekv.Store, rec kv.Record) error{
		"the life file is not locked": func(s *filekv.Store, rec kv.Record) error {
			path := s.LifeFile(rec)
			return firstErr(removeLife(path), func() error { return os.WriteFile(path, nil, 0o600) })
		},
		"the life file is gone": func(s *filekv.Store, rec kv.Record) error {
			return removeLife(s.LifeFile(rec))
		},
		"the life file is locked": func(*filekv.Store, kv.Record) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			rec, err := s.Create(t.Context(), "n", signed(ttl))
			require.NoError(t, err)
			edit(t, s, "n", bootID(t), otherBoot)
			require.NoError(t, after(s, rec))
			other := open(t, filepath.Dir(s.Lives()))
			began := time.Now()
			_, err = other.Create(t.Context(), "n", signed(ttl))
			require.ErrorIs(t, err, kv.ErrHeld)
			require.GreaterOrEqual(t, vacated(t, other, "n", began), ttl)
			next, err := other.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			require.Greater(t, next.Token, rec.Token)
			_, err = s.Refresh(t.Context(), "n", rec)
			require.ErrorIs(t, err, kv.ErrStale)
		})
	}
}

// removeLife removes a life file that is locked, which its store gives up if it is slow beyond the TTL.
func removeLife(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func TestAPageThatACrashOfTheHostHasTornIsOfNobody(t *testing.T) {
	for name, after := range map[string]func(path string, size int64) error{
		"torn":  func(path string, size int64) error { return os.Truncate(path, size/2+40) },
		"empty": func(path string, _ int64) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			rec, err := s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			edit(t, s, "n", bootID(t), otherBoot)
			require.NoError(t, os.Remove(s.LifeFile(rec)))
			info, err := os.Stat(lastPage(t, s, "n"))
			require.NoError(t, err)
			require.NoError(t, after(lastPage(t, s, "n"), info.Size()))
			_, err = s.Get(t.Context(), "n")
			require.ErrorIs(t, err, kv.ErrVacant)
			_, err = s.Refresh(t.Context(), "n", rec)
			require.ErrorIs(t, err, kv.ErrStale)
			next, err := s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			require.Greater(t, next.Token, rec.Token)
		})
	}
}

func TestARecordWhoseLifeFileWasRemovedLivesByItsDeadline(t *testing.T) {
	filekv.InTime(t, time.Second, func(ttl time.Duration) bool {
		dir := t.TempDir()
		s, other := open(t, dir), open(t, dir)
		created := time.Now()
		rec, err := s.Create(t.Context(), "n", signed(ttl))
		require.NoError(t, err)
		removed := os.Remove(s.LifeFile(rec))
		began := time.Now()
		_, refreshed := s.Refresh(t.Context(), "n", rec)
		_, err = other.Create(t.Context(), "n", signed(ttl))
		if time.Since(created) >= ttl {
			return false
		}
		require.NoError(t, removed)
		require.NoError(t, refreshed)
		require.ErrorIs(t, err, kv.ErrHeld)
		require.GreaterOrEqual(t, vacated(t, other, "n", began), ttl)
		return true
	})
}

func TestTokensGrowWhenTheFolderWasRemoved(t *testing.T) {
	s := open(t, t.TempDir())
	var last uint64
	for range 20 {
		rec, err := s.Create(t.Context(), "n", signed(ample))
		require.NoError(t, err)
		require.Greater(t, rec.Token, last)
		last = rec.Token
		require.NoError(t, os.RemoveAll(s.Folder("n")))
		_, err = s.Refresh(t.Context(), "n", rec)
		require.ErrorIs(t, err, kv.ErrStale)
	}
}

func TestWhatIsNotOursIsForeignAndStays(t *testing.T) {
	for what, put := range map[string]func(folder, page string) error{
		"a page of rubbish": func(_, page string) error { return os.WriteFile(page, []byte("rubbish"), 0o600) },
		"a page of another safe": func(_, page string) error {
			return os.WriteFile(page, []byte(`{"filekv":1,"clock":"c","deadline_ns":1,"life":"AAAAAAAAAAAAAAAAAAAAAAAAAA","name":"other"}`+"\n{}\n"), 0o600)
		},
		"a page from the future": func(_, page string) error {
			return os.WriteFile(page, []byte(`{"filekv":2,"clock":"c","deadline_ns":1,"life":"AAAAAAAAAAAAAAAAAAAAAAAAAA","name":"n"}`+"\n{}\n"), 0o600)
		},
		"a page with a path for a life file": func(_, page string) error {
			return os.WriteFile(page, []byte(`{"filekv":1,"clock":"c","deadline_ns":1,"life":"../../../../../etc/passwd","name":"n"}`+"\n{}\n"), 0o600)
		},
		"a large page": func(_, page string) error { return os.WriteFile(page, make([]byte, 2<<20), 0o600) },
		"a folder as a page": func(_, page string) error {
			return firstErr(os.Remove(page), func() error { return os.Mkdir(page, 0o700) })
		},
		"a link as a page": func(_, page string) error {
			return firstErr(os.Remove(page), func() error { return os.Symlink("/etc/hostname", page) })
		},
		"a pipe as a page": func(_, page string) error {
			return firstErr(os.Remove(page), func() error { return syscall.Mkfifo(page, 0o600) })
		},
		"a folder of other things": func(folder, page string) error {
			return firstErr(os.RemoveAll(folder), func() error { return os.MkdirAll(filepath.Join(folder, "things"), 0o700) })
		},
		"a pipe for the folder": func(folder, _ string) error {
			return firstErr(os.RemoveAll(folder), func() error { return syscall.Mkfifo(folder, 0o600) })
		},
		"a link for the folder": func(folder, _ string) error {
			return firstErr(os.Rename(folder, folder+"~"), func() error { return os.Symlink(folder+"~", folder) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, t.TempDir())
			rec, err := s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			require.NoError(t, put(s.Folder("n"), lastPage(t, s, "n")))
			got, err := s.Get(t.Context(), "n")
			require.NoError(t, err)
			require.True(t, got.Foreign && got.Permanent, "%.200v", got)
			for range 2 {
				_, err = s.Create(t.Context(), "n", signed(ample))
				require.ErrorIs(t, err, kv.ErrHeld)
				_, err = s.Refresh(t.Context(), "n", rec)
				require.ErrorIs(t, err, kv.ErrStale)
				require.ErrorIs(t, s.Delete(t.Context(), "n", rec), kv.ErrStale)
				_, err = s.Swap(t.Context(), "n", rec, signed(ample))
				require.ErrorIs(t, err, kv.ErrStale)
			}
			again, err := s.Get(t.Context(), "n")
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestAPageThatWasEditedByHandIsForeign(t *testing.T) {
	for _, change := range [][2]string{
		{"}\n{", "}\n"},
		{`"token":`, `"token":9`},
		{`"revision":`, `"revision":9`},
		{`"token":`, `"talken":`},
		{`"ttl_ms":`, `"ttl_s":`},
	} {
		s := open(t, t.TempDir())
		_, err := s.Create(t.Context(), "n", signed(ample))
		require.NoError(t, err)
		edit(t, s, "n", change[0], change[1])
		rec, err := s.Get(t.Context(), "n")
		require.NoError(t, err)
		require.True(t, rec.Foreign, "%q for %q", change[1], change[0])
	}
}

// The lock of the folder keeps order, nothing more.
func TestNobodyIsKeptOutByAWriterThatIsStuck(t *testing.T) {
	s := open(t, t.TempDir())
	rec, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	stuck := flock.New(s.Folder("n"), flock.SetFlag(os.O_RDONLY))
	ok, err := stuck.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	defer stuck.Close()

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Refresh(short, "n", rec)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	began := time.Now()
	_, err = s.Refresh(t.Context(), "n", rec)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "n", rec))
	_, err = s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	require.Less(t, time.Since(began), patience)
}

// A directory may go with its user's last logout, or by somebody's hand.
func TestADirectoryThatIsRemovedTakesItsRecordsWithItAndIsMadeAnew(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s, other := open(t, dir), open(t, dir)
			rec, err := s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			states := 0
			for got, err := range other.Watch(ctx, "n") {
				if states++; states == 1 {
					require.NoError(t, err)
					require.Equal(t, rec, got)
					require.NoError(t, remove(dir))
					continue
				}
				require.ErrorIs(t, err, kv.ErrVacant)
				break
			}
			_, err = s.Refresh(t.Context(), "n", rec)
			require.ErrorIs(t, err, kv.ErrStale)
			require.ErrorIs(t, s.Delete(t.Context(), "n", rec), kv.ErrStale)
			require.NoDirExists(t, dir, "readers and owners make nothing")

			next, err := other.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			require.Greater(t, next.Token, rec.Token)
			require.FileExists(t, s.LifeFile(next))
			_, err = s.Create(t.Context(), "n", signed(ample))
			require.ErrorIs(t, err, kv.ErrHeld)
			require.NoError(t, other.Delete(t.Context(), "n", next))
			again, err := s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			require.Greater(t, again.Token, next.Token)
			require.FileExists(t, s.LifeFile(again), "the life of before has no file any more")
		})
	}
}

func TestAStoreWhoseDirectoryIsRemovedBeginsAnotherLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	_, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	rec, err := s.Create(t.Context(), "n", signed(ample)) // before it has noticed
	require.NoError(t, err)
	require.FileExists(t, s.LifeFile(rec))
}

func firstErr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}
