package etcdkv

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

const leaseTTL = 8 * time.Second

// begun is when the tests begin.
var begun = time.Now()

func at(seconds float64) time.Time {
	return begun.Add(time.Duration(seconds * float64(time.Second)))
}

// granted returns a sharing with one lease.
func granted(t *testing.T, name string) *sharing {
	t.Helper()
	var s sharing
	grantTo(t, &s, name)
	return &s
}

func grantTo(t *testing.T, s *sharing, name string) {
	t.Helper()
	require.True(t, s.begin(leaseTTL))
	s.granted(leaseTTL, spare.Lease{ID: name, TTL: leaseTTL, Since: at(0)}, nil)
}

func record(signature string, token, revision uint64) kv.Record {
	return kv.Record{Signature: signature, Token: token, Revision: revision, TTL: leaseTTL, Lease: "own"}
}

// moves has a record move to the lease.
func moves(t *testing.T, s *sharing, key string, rec kv.Record, lease string, now time.Time) kv.Record {
	t.Helper()
	to, lacking := s.move(key, rec, false, now)
	require.Equal(t, lease, to)
	require.False(t, lacking)
	s.moved(key, rec, to, rec.Revision)
	rec.Lease, rec.Revision = to, rec.Revision+1
	return rec
}

func TestLeasesAreGrantedOneAtATimeAndWhenTheyAreLacking(t *testing.T) {
	var s sharing
	_, lacking := s.move("a", record("a", 1, 1), false, at(0))
	require.True(t, lacking)
	require.True(t, s.begin(leaseTTL))
	require.False(t, s.begin(leaseTTL), "one is being granted")
	require.True(t, s.begin(2*leaseTTL))
	s.granted(leaseTTL, spare.Lease{}, errors.New("no"))
	require.True(t, s.begin(leaseTTL))
	s.granted(leaseTTL, spare.Lease{ID: "short", TTL: leaseTTL - 1}, nil)
	require.Empty(t, s.leases)
	grantTo(t, &s, "one")
	require.False(t, s.begin(leaseTTL))
	for i := range mostShare {
		moves(t, &s, fmt.Sprint(i), record("a", 1, 1), "one", at(0))
	}
	_, lacking = s.move("more", record("a", 1, 1), false, at(0))
	require.True(t, lacking)
	grantTo(t, &s, "two")
	moves(t, &s, "more", record("a", 1, 1), "two", at(0))
	s.forget("7", record("a", 1, 1))
	moves(t, &s, "even more", record("a", 1, 1), "one", at(0)) // the fuller one
}

func TestAMoveIsOpenUntilItsOutcomeIsKnown(t *testing.T) {
	s := granted(t, "one")
	rec := record("a", 1, 5)
	to, _ := s.move("key", rec, false, at(0))
	require.Equal(t, place{lease: "one", from: 5}, s.asks("key", rec, at(1)))
	s.stays("key", rec, to, 4)
	s.moved("key", rec, to, 4)
	s.stays("key", rec, "other", 5)
	require.Equal(t, place{lease: "one", from: 5}, s.asks("key", rec, at(1)), "they were others")
	s.moved("key", rec, to, 5)
	require.Equal(t, place{lease: "one"}, s.asks("key", rec, at(1)))
	s.stays("key", rec, to, 5)
	require.Equal(t, place{lease: "one"}, s.asks("key", rec, at(1)), "it has moved")
	require.Zero(t, s.asks("key", record("b", 1, 5), at(1)))
	require.Zero(t, s.asks("key", record("a", 2, 5), at(1)))
	require.Zero(t, s.asks("other", rec, at(1)))
	s.forget("key", rec)
	require.Zero(t, s.asks("key", rec, at(1)))
}

func TestARecordThatLeavesALeaseIsOnBothUntilItHasMoved(t *testing.T) {
	s := granted(t, "one")
	rec := moves(t, s, "key", record("a", 1, 5), "one", at(0))
	s.close("one")
	require.Equal(t, place{lease: "one", leave: true}, s.asks("key", rec, at(1)))
	grantTo(t, s, "two")
	to, _ := s.move("key", rec, true, at(1))
	require.Equal(t, place{lease: "two", from: 6, old: "one"}, s.asks("key", rec, at(1)))
	s.stays("key", rec, to, 6)
	require.Equal(t, place{lease: "one", leave: true}, s.asks("key", rec, at(1)))
	moves(t, s, "key", rec, "two", at(1))
	require.Equal(t, place{lease: "two"}, s.asks("key", rec, at(1)))
	require.Empty(t, s.leases["one"].backs)
}

func TestARecordThatWasSeenWithALeaseHasMovedThere(t *testing.T) {
	s := granted(t, "one")
	rec := record("a", 1, 5)
	_, _ = s.move("key", rec, false, at(0))
	rec.Lease, rec.Revision = "one", 6
	require.Equal(t, place{lease: "one"}, s.asks("key", rec, at(1)))
	s.close("one")
	grantTo(t, s, "two")
	_, _ = s.move("key", rec, true, at(1))
	for range 20 { // whatever comes first
		require.Equal(t, place{lease: "two", from: 6, old: "one"}, s.asks("key", rec, at(1)))
		require.Equal(t, place{lease: "two", from: 6, old: "one"}, s.asks("key", record("a", 1, 5), at(1)))
	}
}

// The answer to a move of an earlier record comes late.
func TestAnEarlierRecordDoesNotTakeALatersPlace(t *testing.T) {
	s := granted(t, "one")
	moves(t, s, "key", record("a", 1, 1), "one", at(0))
	grantedTo := s.leases["one"]
	later := record("b", 2, 7)
	_, _ = s.move("key", later, false, at(0))
	to, lacking := s.move("key", record("a", 1, 1), false, at(0))
	require.Empty(t, to)
	require.False(t, lacking)
	require.Equal(t, place{lease: "one", from: 7}, s.asks("key", later, at(0)))
	require.Len(t, grantedTo.backs, 1)
}

func TestNothingMovesAfterARefusalButWhatHasToLeave(t *testing.T) {
	s := granted(t, "one")
	s.refuse(at(0), false)
	to, lacking := s.move("key", record("a", 1, 1), false, at(1))
	require.Empty(t, to)
	require.False(t, lacking)
	to, _ = s.move("other", record("a", 1, 1), true, at(1))
	require.Equal(t, "one", to)
	for now := 5.0; now < 100; now += 5 {
		s.asks("other", record("a", 1, 1), at(now)) // or the lease is given up
	}
	to, _ = s.move("key", record("a", 1, 1), false, at(100))
	require.Equal(t, "one", to)
}

func TestSilentRecordsAreFoundAndCloseTheirLease(t *testing.T) {
	s := granted(t, "one")
	kept := moves(t, s, "kept", record("a", 1, 1), "one", at(0))
	moves(t, s, "left", record("b", 2, 2), "one", at(0))
	seen := map[string]bool{}
	for now := 0.0; !s.leases["one"].closed; now += 0.5 {
		require.LessOrEqual(t, now, 12.5)
		s.asks("kept", kept, at(now))
		for _, r := range s.silents(at(now), true) {
			require.Equal(t, silent{"left", "one", kv.Record{Signature: "b", Token: 2}, 0}, r)
			require.Greater(t, now, 6.0)
			seen[r.key] = true
		}
	}
	require.Contains(t, seen, "left")
	require.Equal(t, place{lease: "one", leave: true}, s.asks("kept", kept, at(13)))
}

func TestASleepIsNoSilence(t *testing.T) {
	s := granted(t, "one")
	moves(t, s, "a", record("a", 1, 1), "one", at(0))
	moves(t, s, "b", record("b", 2, 2), "one", at(0))
	require.Empty(t, s.silents(at(2), true))
	for now := 60.0; now < 66; now++ {
		require.Empty(t, s.silents(at(now), true), now)
	}
	require.False(t, s.leases["one"].closed)
	require.Len(t, s.silents(at(67), true), 2)
}

func TestAClosedLeaseThatNobodyAsksForIsForgotten(t *testing.T) {
	s := granted(t, "one")
	rec := moves(t, s, "left", record("a", 1, 1), "one", at(0))
	s.close("one")
	for now := 2.0; now < 31; now += 2 {
		s.silents(at(now), true)
		require.Contains(t, s.leases, "one")
	}
	s.silents(at(33), true)
	require.Empty(t, s.leases)
	require.Zero(t, s.asks("left", rec, at(33)))
}

func TestALeaseThatMayBeOverTakesNoMoreIfItHasNoRecords(t *testing.T) {
	s := granted(t, "one")
	moves(t, s, "a", record("a", 1, 1), "one", at(0))
	s.doubt("one")
	require.Equal(t, "one", enters(s, at(0)), "its record finds out")
	s.forget("a", record("a", 1, 1))
	s.doubt("one")
	require.Empty(t, enters(s, at(0)))
}

// enters has a record created, and returns the lease that it has.
func enters(s *sharing, now time.Time) string {
	one := s.enter(leaseTTL, now)
	if one.ID != "" {
		s.exit(one.ID)
	}
	return one.ID
}

func TestARecordIsCreatedWithTheLeaseThatHasTheFewest(t *testing.T) {
	s := granted(t, "one")
	for i := range mostShare {
		require.Equal(t, "one", s.enter(leaseTTL, at(0)).ID, i)
	}
	require.Empty(t, s.enter(leaseTTL, at(0)), "each has its place kept")
	for i := range mostShare {
		s.joined("one", fmt.Sprint(i), record("a", 1, 1), at(0))
		s.exit("one")
	}
	require.Empty(t, s.enter(leaseTTL, at(0)))
	grantTo(t, s, "two")
	s.forget("7", record("a", 1, 1))
	require.Equal(t, "two", enters(s, at(0)))
	require.Empty(t, s.enter(2*leaseTTL, at(0)))
	s.close("two")
	require.Equal(t, "one", enters(s, at(0)))
	require.Equal(t, place{lease: "one"}, s.asks("8", record("a", 1, 1), at(0)))
}

func TestALeaseThatNobodyHasKeptAliveForLongTakesNoMore(t *testing.T) {
	s := granted(t, "one")
	require.Equal(t, "one", enters(s, at(5)))
	require.Equal(t, "one", enters(s, at(10)), "the last one was to keep it alive")
	require.Empty(t, enters(s, at(16.5)))
	require.True(t, s.begin(leaseTTL), "another is granted")
}

// The server grants no shorter one.
func TestALeaseIsFoundByTheTTLThatWasAskedForAndByThatGranted(t *testing.T) {
	var s sharing
	require.True(t, s.begin(leaseTTL))
	s.granted(leaseTTL, spare.Lease{ID: "one", TTL: 2 * leaseTTL, Since: at(0)}, nil)
	for _, ttl := range []time.Duration{leaseTTL, 2 * leaseTTL} {
		require.Equal(t, spare.Lease{ID: "one", TTL: 2 * leaseTTL}, s.enter(ttl, at(0)))
	}
}

func TestAnEarlierRecordIsNotListedBesideALater(t *testing.T) {
	s := granted(t, "one")
	later := record("b", 2, 7)
	s.joined("one", "key", later, at(0))
	s.joined("one", "key", record("a", 1, 1), at(0))
	require.Equal(t, place{lease: "one"}, s.asks("key", later, at(0)))
}

// It would know nothing of what comes there late.
func TestAClosedLeaseIsRememberedWithoutRecords(t *testing.T) {
	s := granted(t, "one")
	s.close("one")
	late := record("a", 1, 1)
	late.Lease = "one"
	s.silents(at(10), true)
	require.Equal(t, place{leave: true}, s.asks("key", late, at(10)))
	require.True(t, s.leaves("one", at(10)))
	s.silents(at(41), true)
	require.Contains(t, s.leases, "one", "somebody has asked")
	s.silents(at(43), true)
	require.Empty(t, s.leases)
}

// Nobody refreshes anything with that TTL.
func TestWhatWasLeftBehindClosesItsLeaseWhateverElseGoesOn(t *testing.T) {
	for what, c := range map[string]struct {
		creates []float64 // in each period
		batches []float64
		period  float64
	}{
		"creates":                       {creates: []float64{0.5}, period: 1},
		"creates now and then":          {creates: []float64{5.9}, period: 5.9},
		"creates seldom":                {creates: []float64{6.5}, period: 6.5},
		"batches of another TTL":        {batches: []float64{6.4}, creates: []float64{6.8}, period: 6.4},
		"batches and creates in a row":  {batches: []float64{6.4}, creates: []float64{5.9, 6.5}, period: 6.4},
		"batches and creates in a swap": {batches: []float64{6.3}, creates: []float64{6.5, 12.2}, period: 6.4},
	} {
		t.Run(what, func(t *testing.T) {
			s := granted(t, "one")
			s.joined("one", "left", record("a", 1, 1), at(0))
			type step struct {
				at    float64
				batch bool
			}
			var steps []step
			for i := range 40 {
				for _, x := range c.creates {
					steps = append(steps, step{at: x + float64(i)*c.period})
				}
				for _, x := range c.batches {
					steps = append(steps, step{x + float64(i)*c.period, true})
				}
			}
			slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
			for _, step := range steps {
				if step.batch {
					s.silents(at(step.at), true)
				} else {
					enters(s, at(step.at))
					s.silents(at(step.at), false)
				}
				if s.leases["one"].closed {
					require.LessOrEqual(t, step.at, 3*leaseTTL.Seconds())
					return
				}
			}
			t.Fatal("it was never closed")
		})
	}
}

func TestALeaseIsSharedForABoundedTime(t *testing.T) {
	s := granted(t, "one")
	rec := moves(t, s, "a", record("a", 1, 1), "one", at(0))
	now := 0.0
	for ; !s.leases["one"].closed; now += 2 {
		require.Less(t, now, 1e4)
		s.asks("a", rec, at(now))
		s.silents(at(now), true)
	}
	most := mostTTLs * leaseTTL.Seconds()
	require.Greater(t, now, most/2)
	require.LessOrEqual(t, now, most+4)
}

func instantAt(mono, boot float64) boottime.Instant {
	return boottime.Instant{Mono: at(mono), Boot: time.Duration(boot * float64(time.Second))}
}

func TestALeaseIsTakenAsItIsOnlyIfItWasKeptAliveLately(t *testing.T) {
	one := spare.Lease{ID: "one", TTL: leaseTTL}
	for what, c := range map[string]struct {
		now  boottime.Instant
		left time.Duration
	}{
		"at once":                   {instantAt(1, 11), leaseTTL},
		"a moment later":            {instantAt(1.5, 11.5), leaseTTL - 500*time.Millisecond},
		"a little before that":      {instantAt(1.9, 11.9), leaseTTL - 900*time.Millisecond},
		"later":                     {instantAt(1.91, 11.91), 0},
		"the system was suspended":  {instantAt(1.2, 11.7), leaseTTL - 700*time.Millisecond},
		"it was suspended for long": {instantAt(1.2, 20), 0},
		"somebody has set a clock":  {instantAt(1.2, 3), leaseTTL - 200*time.Millisecond},
		"before it was kept alive":  {instantAt(0.5, 10.5), 0},
	} {
		t.Run(what, func(t *testing.T) {
			s := granted(t, "one")
			require.Empty(t, s.fresh(one, c.now), "nobody has said when it was granted")
			s.renewed("one", instantAt(1, 11))
			s.renewed("one", instantAt(0, 10)) // which was answered late
			s.renewed("two", instantAt(1, 11))
			got := s.fresh(one, c.now)
			require.Equal(t, c.left, got.TTL)
			require.Equal(t, c.left != 0, got.ID != "")
			require.Equal(t, leaseTTL, whole(leaseTTL-lately), "what is left tells the TTL of the lease")
		})
	}
	require.Empty(t, granted(t, "one").fresh(spare.Lease{}, instantAt(0, 0)))
}

func TestFewKeysAreRememberedThatWereEmptied(t *testing.T) {
	var s sharing
	require.False(t, s.refill("a"))
	s.empty("a")
	require.True(t, s.refill("a"))
	require.False(t, s.refill("a"), "the next one looks")
	for i := range 2 * mostEmptied {
		s.empty(fmt.Sprint(i))
		require.LessOrEqual(t, len(s.emptied), mostEmptied)
		require.Contains(t, s.emptied, fmt.Sprint(i))
	}
}

func TestARecordIsKnownByTheTTLInItsText(t *testing.T) {
	s := granted(t, "one")
	short := record("a", 1, 1)
	short.Lease, short.TTL = "one", leaseTTL-300*time.Millisecond
	s.joined("one", "key", short, at(0))
	refreshed := short
	refreshed.TTL = leaseTTL
	require.Equal(t, short, s.written("key", refreshed))
	require.Equal(t, refreshed, s.written("another", refreshed))
	s.close("one")
	grantTo(t, s, "two")
	moved := moves(t, s, "key", short, "two", at(1))
	moved.TTL = leaseTTL
	require.Equal(t, moved, s.written("key", moved), "whose text has all of it again")
}
