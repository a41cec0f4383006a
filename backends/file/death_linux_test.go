package filekv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

// vacated returns how long after start a watch saw the safe become vacant.
func vacated(t testing.TB, s kv.Store, name string, start time.Time) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, err := range s.Watch(ctx, name) {
		if err != nil {
			require.ErrorIs(t, err, kv.ErrVacant)
			break
		}
	}
	return time.Since(start)
}

func TestAKilledHolderFreesItsSafeAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	holder := start(t, command(t, "hold", filepath.Dir(s.Lives()), "n", ample))
	holder.says("holding")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var killed time.Time
	for rec, err := range s.Watch(ctx, "n") {
		if killed.IsZero() {
			require.NoError(t, err)
			require.NotEmpty(t, rec.Lease)
			killed = time.Now()
			holder.signal(unix.SIGKILL)
			continue
		}
		require.ErrorIs(t, err, kv.ErrVacant)
		break
	}
	t.Logf("the watch saw it after %v", time.Since(killed))
	rec, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "n", rec))
}

func TestAFrozenHoldersRecordFadesAndCannotBeRevived(t *testing.T) {
	t.Parallel() // it mostly waits
	filekv.InTime(t, time.Second, func(ttl time.Duration) bool {
		s := open(t, t.TempDir())
		holder := start(t, command(t, "hold", filepath.Dir(s.Lives()), "n", ttl))
		token, err := strconv.ParseUint(holder.says("holding"), 10, 64)
		require.NoError(t, err)
		time.Sleep(2 * ttl)
		_, err = s.Get(t.Context(), "n")
		if errors.Is(err, kv.ErrVacant) {
			return false
		}
		require.NoError(t, err, "a holder that refreshes keeps its record")

		holder.signal(unix.SIGSTOP)
		stopped := time.Now()
		t.Logf("the watch saw it after %v", vacated(t, s, "n", stopped))
		rec, err := s.Create(t.Context(), "n", signed(ample))
		require.NoError(t, err)
		require.Greater(t, rec.Token, token)

		holder.signal(unix.SIGCONT)
		require.Contains(t, holder.says("error:"), kv.ErrStale.Error())
		got, err := s.Get(t.Context(), "n")
		require.NoError(t, err)
		require.Equal(t, rec, got)
		return true
	})
}

func TestAChildThatInheritedTheLockKeepsADeadHoldersRecordToTheDeadlineOnly(t *testing.T) {
	t.Parallel() // it mostly waits
	filekv.InTime(t, 3*time.Second, func(ttl time.Duration) bool {
		s := open(t, t.TempDir())
		began := time.Now()
		holder := start(t, command(t, "inherit", filepath.Dir(s.Lives()), "n", ttl))
		line := holder.line()
		heir, err := strconv.Atoi(strings.TrimPrefix(line, "inherited by "))
		if err != nil && time.Since(began) >= ttl {
			return false
		}
		require.NoError(t, err, line)
		defer unix.Kill(heir, unix.SIGKILL)

		holder.dies()
		_, err = s.Create(t.Context(), "n", signed(ample))
		if time.Since(began) >= ttl {
			return false
		}
		require.ErrorIs(t, err, kv.ErrHeld, "the lock outlives the holder")
		require.GreaterOrEqual(t, vacated(t, s, "n", began), ttl)
		require.NoError(t, unix.Kill(heir, 0), "the child was there all the time")
		_, err = s.Create(t.Context(), "n", signed(ample))
		require.NoError(t, err)
		return true
	})
}

// The life of a record is that of the process to which it was handed over.
func TestARecordThatWasHandedOverLivesAndDiesWithItsHeir(t *testing.T) {
	s := open(t, t.TempDir())
	heir := start(t, command(t, "hold", filepath.Dir(s.Lives()), "second", ample))
	heir.says("holding")
	old, err := s.Create(t.Context(), "first", signed(ample))
	require.NoError(t, err)
	next, err := s.Get(t.Context(), "second")
	require.NoError(t, err)
	rec, err := s.Swap(t.Context(), "first", old, next)
	require.NoError(t, err)
	got, err := s.Get(t.Context(), "first")
	require.NoError(t, err)
	require.Equal(t, rec, got)

	heir.signal(unix.SIGKILL)
	vacated(t, s, "first", time.Now())
	_, err = s.Swap(t.Context(), "first", rec, next)
	require.ErrorIs(t, err, kv.ErrStale)
	mine, err := s.Create(t.Context(), "first", signed(ample))
	require.NoError(t, err)
	_, err = s.Swap(t.Context(), "first", mine, next)
	require.ErrorIs(t, err, kv.ErrStale, "nothing is handed over to the dead")
}

// files returns the names in dir.
func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
