package filekv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const long = time.Hour

func pair(t *testing.T) (s, other *Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := New(dir, nil)
	require.NoError(t, err)
	other, err = New(dir, nil)
	require.NoError(t, err)
	return s, other
}

func (s *Store) hasLife() bool {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	return s.life != nil
}

// requireRest requires that the store gives up its life soon.
func (s *Store) requireRest(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !s.hasLife() }, time.Minute, 10*time.Millisecond)
}

func (s *Store) lifeFile(rec kv.Record) string {
	life, _, _ := parseLease(rec.Lease)
	return filepath.Join(s.lives(), life)
}

func (s *Store) lifeFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(s.lives())
	require.NoError(t, err)
	return len(entries)
}

func TestALifeIsGivenUpAfterItsLastRecord(t *testing.T) {
	s, _ := pair(t)
	var recs []kv.Record
	for _, name := range []string{"a", "b", "c"} {
		rec, err := s.Create(t.Context(), name, kv.Record{Signature: "s", TTL: long})
		require.NoError(t, err)
		recs = append(recs, rec)
	}
	require.Equal(t, 1, s.lifeFiles(t), "records share a life")
	require.NoError(t, s.Delete(t.Context(), "a", recs[0]))
	require.NoError(t, s.Delete(t.Context(), "b", recs[1]))
	require.True(t, s.hasLife())
	require.NoError(t, s.Delete(t.Context(), "c", recs[2]))
	require.False(t, s.hasLife())
	require.Zero(t, s.lifeFiles(t))
}

func TestALifeIsGivenUpWhenItsLastRecordHasFaded(t *testing.T) {
	s, _ := pair(t)
	_, err := s.Create(t.Context(), "a", kv.Record{Signature: "s", TTL: 100 * time.Millisecond})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "b", kv.Record{Signature: "s", TTL: 300 * time.Millisecond})
	require.NoError(t, err)
	s.requireRest(t)
	require.Zero(t, s.lifeFiles(t))
}

// The last record fades, and nothing is looked after, when the next one comes.
func TestALifeIsGivenUpThoughItHadNoRecordForAWhile(t *testing.T) {
	s, _ := pair(t)
	rec := kv.Record{Signature: "s", TTL: 50 * time.Millisecond}
	_, err := s.pin() // an operation that goes on
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", rec)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s.lifeMu.Lock()
		defer s.lifeMu.Unlock()
		return len(s.life.holds) == 0
	}, 20*time.Second, time.Millisecond)
	_, err = s.Create(t.Context(), "b", rec)
	require.NoError(t, err)
	s.unpin()
	s.requireRest(t)
}

func TestALifeLastsAsLongAsSomebodyRefreshesItsRecord(t *testing.T) {
	InTime(t, 2*time.Second, func(ttl time.Duration) bool {
		s, other := pair(t)
		last := time.Now()
		rec, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: ttl})
		require.NoError(t, err)
		for began := time.Now(); time.Since(began) < ttl*3/2; time.Sleep(ttl / 8) {
			start := time.Now()
			_, err := other.Refresh(t.Context(), "n", rec)
			if err != nil && time.Since(last) >= ttl {
				return false
			}
			require.NoError(t, err)
			last = start
		}
		if !s.hasLife() && time.Since(last) >= ttl {
			return false
		}
		require.True(t, s.hasLife())
		s.requireRest(t)
		return true
	})
}

func TestALifeLastsForASafeThatWasHandedOverToIt(t *testing.T) {
	heir, leader := pair(t)
	second, err := heir.Create(t.Context(), "second", kv.Record{Signature: "heir", TTL: long})
	require.NoError(t, err)
	old, err := leader.Create(t.Context(), "first", kv.Record{Signature: "leader", TTL: long})
	require.NoError(t, err)
	first, err := leader.Swap(t.Context(), "first", old, second)
	require.NoError(t, err)
	require.False(t, leader.hasLife(), "it backs nothing any more")
	require.NoError(t, heir.Delete(t.Context(), "second", second))
	require.True(t, heir.hasLife())
	require.FileExists(t, heir.lifeFile(first))
	got, err := leader.Get(t.Context(), "first")
	require.NoError(t, err)
	require.Equal(t, first, got)
	require.NoError(t, heir.Delete(t.Context(), "first", first))
	require.False(t, heir.hasLife())
	require.Zero(t, heir.lifeFiles(t))
}

func TestACreateThatFindsTheSafeHeldNeedsNoLife(t *testing.T) {
	s, other := pair(t)
	_, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
	require.NoError(t, err)
	_, err = other.Create(t.Context(), "n", kv.Record{Signature: "o", TTL: long})
	require.ErrorIs(t, err, kv.ErrHeld)
	require.False(t, other.hasLife())
}

func TestOldRemainsOfTheDeadAreCleanedUpAndTheLivingSpared(t *testing.T) {
	s, other := pair(t)
	living, err := other.Create(t.Context(), "n", kv.Record{Signature: "o", TTL: long})
	require.NoError(t, err)
	dead, fresh := filepath.Join(s.lives(), "DEAD"), filepath.Join(s.lives(), "FRESH")
	temp := filepath.Join(s.dir, "temps", "T")
	require.NoError(t, os.WriteFile(dead, nil, 0o600))
	require.NoError(t, os.WriteFile(fresh, nil, 0o600))
	require.NoError(t, os.Mkdir(temp, 0o700))
	old := time.Now().Add(-2 * garbage)
	for _, path := range []string{dead, temp, s.lifeFile(living)} {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	_, err = s.Create(t.Context(), "m", kv.Record{Signature: "s", TTL: long})
	require.NoError(t, err)
	require.NoFileExists(t, dead)
	require.NoDirExists(t, temp)
	require.FileExists(t, fresh)
	_, err = s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
	require.ErrorIs(t, err, kv.ErrHeld)

	_, err = other.Refresh(t.Context(), "n", living)
	require.NoError(t, err)
	info, err := os.Stat(s.lifeFile(living))
	require.NoError(t, err)
	require.Less(t, time.Since(info.ModTime()), garbage, "a refresh makes the life file young")
}

func TestNothingIsHandedOverToAnHeirThatHasBegunAnew(t *testing.T) {
	heir, leader := pair(t)
	_, err := heir.Create(t.Context(), "another", kv.Record{Signature: "heir", TTL: long})
	require.NoError(t, err)
	second, err := heir.Create(t.Context(), "second", kv.Record{Signature: "heir", TTL: long})
	require.NoError(t, err)
	require.NoError(t, heir.Delete(t.Context(), "second", second))
	_, err = heir.Create(t.Context(), "second", kv.Record{Signature: "heir again", TTL: long})
	require.NoError(t, err)
	first, err := leader.Create(t.Context(), "first", kv.Record{Signature: "leader", TTL: long})
	require.NoError(t, err)
	_, err = leader.Swap(t.Context(), "first", first, second)
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = leader.Refresh(t.Context(), "first", first)
	require.NoError(t, err)
}

func TestALeaseThatIsNotOursIsInvalid(t *testing.T) {
	s, _ := pair(t)
	old, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
	require.NoError(t, err)
	life, _, _ := parseLease(old.Lease)
	for _, lease := range []string{"7587848", life, life + "/", life + "/../n", life + "/..", "../" + life + "/n"} {
		_, err = s.Swap(t.Context(), "n", old, kv.Record{Signature: "t", TTL: long, Lease: lease})
		require.ErrorIs(t, err, kv.ErrInvalid, "%q", lease)
	}
	_, err = s.Swap(t.Context(), "n", old, kv.Record{Signature: "t", TTL: long, Lease: life + "/m"})
	require.ErrorIs(t, err, kv.ErrStale)
}
