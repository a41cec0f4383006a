//go:build unix

package succession_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// After the network is quiet for Stability and a TTL, the highest rank leads.
func TestTheHighestRankLeadsOnceAllIsQuiet(t *testing.T) {
	t.Parallel()
	const stability = 2 * time.Second
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		of := func(rank int) election.Options {
			return election.Options{TTL: short, Succession: election.ByRank, Rank: rank, Stability: stability}
		}
		dead := life(t, f.eye, short) + hesitation + slack
		quiet := stability + short + hesitation + slack
		f.enter("one", of(1))
		f.leads(0, patience)
		f.enter("three", of(3))
		f.enter("two", of(2))
		f.reigns("three", quiet)

		t.Log("the highest is cut off: the next one leads; it comes back")
		three := f.member("three")
		f.await("three has led for long enough not to be thought to flap", patience, lasts(three, stability))
		three.link.cut()
		f.reigns("two", dead)
		three.link.heal()
		f.reigns("three", quiet)
		f.judge(short)

		// On a busy machine "two" may be heir first, and terms may be lost.
		ranks := map[string]int{"one": 1, "two": 2, "three": 3}
		terms := f.history().Stretches()
		for i, now := range terms[1:] {
			before := terms[i]
			lost := strings.Contains(before.Cause, election.ErrLost.Error())
			require.True(t, lost || ranks[now.Who] > ranks[before.Who],
				"%s followed %s, whose term ended so: %s", now.Who, before.Who, before.Cause)
		}
	})
}

// A candidate of the highest rank whose terms keep ending early gets fewer and
// fewer of them: from the second on, each doubles the time for which it has to be
// heir before the next. It makes no difference whether it comes back when its
// record has faded, as after a crash, or as soon as it has noticed its loss, in
// time to give up what is left of its record.
func TestAFlappingHighestRankGetsAStatedShare(t *testing.T) {
	t.Parallel()
	const (
		ttl       = 2 * time.Second
		stability = 3 * time.Second
		span      = 40 * time.Second
		works     = 200 * time.Millisecond
	)
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		of := func(rank int) election.Options {
			return election.Options{TTL: ttl, Succession: election.ByRank, Rank: rank, Stability: stability}
		}
		f.enter("one", of(1))
		f.leads(0, patience)
		f.enter("two", of(2))
		flap := f.enter("flap", of(9))
		begun := boottime.Now()
		left := func() time.Duration { return span - (boottime.Now() - begun) }
		for n := 0; left() > 0 && f.awaits(left(), func() bool { return flap.term != nil }); n++ {
			f.await("it works for a while", patience, lasts(flap, works))
			flap.link.hush()
			f.await("its term has ended", patience, func() bool { return flap.term == nil })
			if n%2 == 0 {
				f.await("another leads", patience, func() bool {
					return slices.ContainsFunc(f.members, func(m *member) bool { return m != flap && m.term != nil })
				})
			}
			flap.link.heal()
		}
		terms, led, losses := 0, time.Duration(0), 0
		for _, s := range f.history().Stretches() {
			switch {
			case s.Who == "flap":
				terms, led = terms+1, led+s.End-s.Begin
			case strings.Contains(s.Cause, election.ErrLost.Error()):
				losses++ // then its heir follows, whoever that is: the machine is busy
			}
		}
		all := boottime.Now() - begun
		// Before its n-th term it is heir for Stability, from the third on for
		// Stability << (n-2): together, before n terms, Stability << (n-1).
		most := 1 + int(math.Log2(float64(all)/float64(stability))) + losses
		t.Logf("%d terms, at most %d; %.0f%% of the time", terms, most, 100*float64(led)/float64(all))
		require.GreaterOrEqual(t, terms, 2, "it does come back")
		require.LessOrEqual(t, terms, most, "%s", history.Timeline(f.history(), 120))
		f.judge(ttl)
	})
}

// reigns waits until the member of that name leads.
func (f *fleet) reigns(id string, within time.Duration) {
	f.t.Helper()
	m := f.member(id)
	f.await(id+" leads", within, func() bool { return m.term != nil })
}

// member returns the member of a name that came last.
func (f *fleet) member(id string) (found *member) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.id == id {
			found = m
		}
	}
	require.NotNil(f.t, found, id)
	return found
}

// lasts reports, in the fleet's await, whether a member has led for so long.
func lasts(m *member, long time.Duration) func() bool {
	return func() bool { return m.term != nil && boottime.Now()-m.began >= long }
}
