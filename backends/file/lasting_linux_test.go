package filekv_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func TestALastingRecordOutlivesItsKilledWriter(t *testing.T) {
	t.Parallel() // it mostly waits
	filekv.InTime(t, 3*time.Second, func(ttl time.Duration) bool {
		s := open(t, t.TempDir())
		began := time.Now()
		writer := start(t, command(t, "last", filepath.Dir(s.Lives()), "n", ttl))
		writer.says("holding")
		writer.dies()
		_, err := s.Get(t.Context(), "n own")
		_, own := s.Create(t.Context(), "n", signed(ample))
		if time.Since(began) >= ttl {
			return false
		}
		require.ErrorIs(t, err, kv.ErrVacant, "the writer is dead")
		require.ErrorIs(t, own, kv.ErrHeld)
		require.GreaterOrEqual(t, vacated(t, s, "n", began), ttl)
		_, err = s.Create(t.Context(), "n", signed(ample))
		require.NoError(t, err)
		return true
	})
}

// An earlier release, which knows of no lasting records, goes by the deadline where it
// finds no life file.
func TestALastingRecordNamesALifeWithoutAFile(t *testing.T) {
	s := open(t, t.TempDir())
	draft := signed(ample)
	draft.Lasting = true
	rec, err := s.Create(t.Context(), "n", draft)
	require.NoError(t, err)
	require.NotEmpty(t, rec.Lease)
	require.NoFileExists(t, s.LifeFile(rec))
	rec, err = s.Refresh(t.Context(), "n", rec)
	require.NoError(t, err)
	require.NoFileExists(t, s.LifeFile(rec))
	require.NoError(t, s.Delete(t.Context(), "n", rec))
}

// Neither the boot id nor the life file tells the age of a record by another clock.
func TestALastingRecordByAnotherClockLivesByTheWallClock(t *testing.T) {
	t.Parallel() // it mostly waits
	filekv.InTime(t, 3*time.Second, func(ttl time.Duration) bool {
		dir := t.TempDir()
		s := open(t, dir)
		for until, lives := range map[time.Duration]bool{
			ttl:       true,
			-ttl:      false,
			time.Hour: false, // the wall clock was set back
		} {
			name := until.String()
			draft := signed(ttl)
			draft.Lasting = true
			began := time.Now()
			rec, err := s.Create(t.Context(), name, draft)
			require.NoError(t, err)
			other := open(t, dir)
			foreignClock(t, folderOf(t, dir, name), time.Now().Add(until))
			got, err := other.Get(t.Context(), name)
			if !lives {
				require.ErrorIs(t, err, kv.ErrVacant, name)
				continue
			}
			if time.Since(began) >= ttl {
				return false
			}
			require.NoError(t, err)
			require.Equal(t, rec, got)
			require.GreaterOrEqual(t, vacated(t, other, name, began), ttl)
			_, err = other.Create(t.Context(), name, signed(ample))
			require.NoError(t, err)
		}
		return true
	})
}

// foreignClock makes the page of a safe one that another boot has written.
func foreignClock(t testing.TB, folder string, until time.Time) {
	t.Helper()
	for _, name := range files(t, folder) {
		path := filepath.Join(folder, name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		head, body, found := bytes.Cut(text, []byte("\n"))
		if !found {
			continue // the head
		}
		var page map[string]any
		require.NoError(t, json.Unmarshal(head, &page))
		page["clock"], page["deadline_ns"], page["until_ms"] = "another", 1, until.UnixMilli()
		head, err = json.Marshal(page)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(append(head, '\n'), body...), 0o600))
	}
}
