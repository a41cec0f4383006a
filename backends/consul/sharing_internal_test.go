package consulkv

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
)

const unitTTL = 10 * time.Second

// later returns an instant that long after now.
func later(begin boottime.Instant, d time.Duration) boottime.Instant {
	return boottime.Instant{Mono: begin.Mono.Add(d), Boot: begin.Boot + d}
}

// sharingOf returns a sharing with a session that was made at an instant.
func sharingOf(t *testing.T, made boottime.Instant) *sharing {
	t.Helper()
	s := &sharing{}
	require.True(t, s.begin(unitTTL, made))
	require.False(t, s.begin(unitTTL, made), "one is being granted")
	s.granted(unitTTL, "one", made)
	require.False(t, s.begin(unitTTL, made), "one is there")
	return s
}

func TestASessionIsEnteredOnceForAKeyUnlessNothingCameOfIt(t *testing.T) {
	begin := boottime.Read()
	s := sharingOf(t, begin)
	require.Equal(t, "one", s.enter(unitTTL, "a", "first", begin))
	require.Empty(t, s.enter(unitTTL, "a", "second", begin))
	require.False(t, s.ofUse(unitTTL, "a", begin), "no session is granted for the sake of one key")
	s.free("one", "a")
	require.Equal(t, "one", s.enter(unitTTL, "a", "second", begin))
	require.Equal(t, ended, s.asks("one", "a", "first", begin))
	require.Equal(t, backed, s.asks("one", "a", "second", begin))
	require.Equal(t, alone, s.asks("another", "a", "second", begin))
	require.Empty(t, s.enter(unitTTL+1, "b", "first", begin), "another TTL")
}

func TestASessionLocksSoManyKeysInAllItsLife(t *testing.T) {
	begin := boottime.Read()
	s := sharingOf(t, begin)
	for i := range mostShare {
		require.Equal(t, "one", s.enter(unitTTL, fmt.Sprint(i), "s", begin))
		s.free("one", fmt.Sprint(i))
	}
	require.Empty(t, s.enter(unitTTL, "one more", "s", begin))
	require.True(t, s.ofUse(unitTTL, "one more", begin))
	require.True(t, s.begin(unitTTL, begin))
}

func TestARenewalThatComesTooLateCountsNoMore(t *testing.T) {
	for _, pass := range map[string]func(boottime.Instant, time.Duration) boottime.Instant{
		"time": later,
		"a suspend": func(i boottime.Instant, d time.Duration) boottime.Instant {
			return boottime.Instant{Mono: i.Mono.Add(1), Boot: i.Boot + d}
		},
	} {
		begin := boottime.Read()
		s := sharingOf(t, begin)
		s.enter(unitTTL, "a", "s", begin)
		soon := later(begin, unitTTL/2)
		require.True(t, s.renewed("one", soon, soon))
		require.True(t, s.renewed("one", later(begin, 1), soon), "one that was sent before")
		after := pass(soon, unitTTL)
		other := sharingOf(t, soon)
		other.enter(unitTTL, "a", "s", soon)
		require.Equal(t, late, other.asks("one", "a", "s", after))
		require.False(t, other.renewed("one", soon, soon), "for ever")
		require.Empty(t, s.enter(unitTTL, "b", "s", after))
		require.False(t, s.renewed("one", after, after))
		require.False(t, s.renewed("one", after, after), "and for ever")
		require.False(t, s.keeps("one", "a", "s"))
		require.True(t, s.begin(unitTTL, after))
		require.True(t, s.shared("one"), "what has it is known")
	}
}

func TestWhatNobodyAsksForFadesAndIsNotRefreshedAfterwards(t *testing.T) {
	begin := boottime.Read()
	s := sharingOf(t, begin)
	for _, key := range []string{"a", "b"} {
		s.enter(unitTTL, key, "s", begin)
	}
	end := begin.Mono.Add(lives * unitTTL)
	for i := range 2 * lives { // what is asked for is renewed
		at := later(begin, unitTTL/2*time.Duration(i))
		require.True(t, s.renewed("one", at, at))
	}
	s.asks("one", "b", "s", later(begin, unitTTL))
	require.Empty(t, s.silents(end.Add(-unitTTL/8), 10))
	require.Equal(t, map[string][]string{"one": {"a"}}, s.silents(end, 10))
	require.Empty(t, s.silents(end, 10), "it was looked at")
	require.False(t, s.fades("one", "b", end))
	require.True(t, s.fades("one", "a", end))
	require.Equal(t, ended, s.asks("one", "a", "s", later(begin, lives*unitTTL)))
	require.False(t, s.keeps("one", "a", "s"))
	require.True(t, s.keeps("one", "b", "s"))
	s.free("one", "a")
	require.Empty(t, s.enter(unitTTL, "a", "again", begin))
	for _, key := range []string{"a", "c"} {
		s.looked("one", key, true, errors.New("no answer"), end)
	}
	require.Equal(t, map[string][]string{"one": {"a"}}, s.silents(end.Add(unitTTL/4), 10))
	require.Len(t, s.silents(end.Add(100*unitTTL), 1)["one"], 1)
}

// While one of its records is kept, its list is needed too: it is renewed.
func TestASessionIsForgottenOnceNothingOfItIsOnItsWay(t *testing.T) {
	begin := boottime.Read()
	s := sharingOf(t, begin)
	for _, key := range []string{"a", "b"} {
		s.enter(unitTTL, key, "s", begin)
	}
	long := 4 * lives * unitTTL
	require.Equal(t, late, s.asks("one", "a", "s", later(begin, unitTTL)))
	forget := func(at boottime.Instant) bool {
		require.True(t, s.begin(unitTTL, at))
		s.granted(unitTTL, "", at)
		return !s.shared("one")
	}
	require.False(t, forget(later(begin, long)))
	require.Equal(t, late, s.asks("one", "a", "s", later(begin, 2*long)))
	require.False(t, forget(later(begin, 3*long-1)))
	require.True(t, forget(later(begin, 3*long)))
}

func TestTermsGoOnForSoLongBesideWhatCannotBeLetGo(t *testing.T) {
	denied := errors.New("denied")
	begin := boottime.Read()
	s := sharingOf(t, begin)
	for _, key := range []string{"left", "living"} {
		s.enter(unitTTL, key, "s", begin)
	}
	stuck := lives * unitTTL // since then
	for now := time.Duration(0); now < stuck+mostStuck*unitTTL; now += unitTTL / 4 {
		at := later(begin, now)
		require.Equal(t, backed, s.asks("one", "living", "s", at), "after %v", now)
		require.True(t, s.renewed("one", at, at))
		if keys := s.silents(at.Mono, 10); keys != nil {
			require.Equal(t, map[string][]string{"one": {"left"}}, keys)
			require.True(t, s.fades("one", "left", at.Mono))
			s.looked("one", "left", now == stuck, denied, at.Mono)
		}
		if takes := s.ofUse(unitTTL, "another", at) && !s.begins(at); takes != (now < stuck+unitTTL) {
			require.Failf(t, "it takes another, or it does not", "after %v: %v", now, takes)
		}
	}
	end := later(begin, stuck+mostStuck*unitTTL)
	s.looked("one", "left", false, denied, end.Mono)
	require.Equal(t, late, s.asks("one", "living", "s", end), "it is still renewed for work that goes on")
	require.False(t, s.renewed("one", end, end))
	require.False(t, s.keeps("one", "living", "s"))
	require.ErrorIs(t, s.whyEnded("one"), denied)
	require.ErrorContains(t, s.whyEnded("one"), `"left"`)
}

// begins reports whether another session is to be granted. None is.
func (s *sharing) begins(now boottime.Instant) bool {
	begins := s.begin(unitTTL, now)
	if begins {
		s.granted(unitTTL, "", now)
	}
	return begins
}

// Of a key that was open when it was last seen, nothing is known once the rights to it are gone.
func TestWhatWasNotLeftBehindWhenItWasLastSeenCondemnsNoSession(t *testing.T) {
	denied := errors.New("denied")
	begin := boottime.Read()
	long := begin.Mono.Add(10 * mostStuck * unitTTL)
	for what, c := range map[string]struct {
		look      func(s *sharing)
		condemned bool
	}{
		"it was never seen": {func(*sharing) {}, true},
		"it was open":       {func(s *sharing) { s.looked("one", "left", false, nil, begin.Mono) }, false},
		"it was let go":     {func(s *sharing) { s.looked("one", "left", true, nil, begin.Mono) }, false},
		"it was stuck till then": {func(s *sharing) {
			s.looked("one", "left", true, denied, begin.Mono)
			s.looked("one", "left", true, nil, begin.Mono)
		}, false},
		"it came again": {func(s *sharing) {
			s.looked("one", "left", false, nil, begin.Mono)
			s.looked("one", "left", true, denied, begin.Mono)
		}, true},
		"it was asked for": {func(s *sharing) {
			s.looked("one", "left", false, nil, begin.Mono)
			s.asks("one", "left", "s", begin)
		}, true},
	} {
		s := sharingOf(t, begin)
		s.enter(unitTTL, "left", "s", begin)
		c.look(s)
		for _, now := range []time.Time{begin.Mono, long} {
			s.looked("one", "left", false, denied, now)
		}
		require.Equal(t, !c.condemned, errors.Is(s.whyEnded("one"), errEnded), what)
	}
}

func TestARefreshBetweenTwoLooksThatFailedIsASight(t *testing.T) {
	denied := errors.New("denied")
	begin := boottime.Read()
	s := sharingOf(t, begin)
	s.enter(unitTTL, "a", "s", begin)
	s.looked("one", "a", true, denied, begin.Mono)
	s.asks("one", "a", "s", begin)
	s.looked("one", "a", true, denied, begin.Mono.Add(10*mostStuck*unitTTL))
	require.Equal(t, errEnded, s.whyEnded("one"))
}
