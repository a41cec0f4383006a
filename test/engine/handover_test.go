package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// What the leader has published meanwhile does not stand in the way, and the safe is
// never empty.
func TestAHandOverGoesOnFromWhatTheSafeHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := twice(store)
		stop := b.succession(faults.Store, store)
		faults.On(kvfault.Swap).Next(1).FailReplies(errStore)
		require.NoError(t, b.last().Proclaim(t.Context(), "v"))
		require.ErrorIs(t, stop(), context.Canceled)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		require.Zero(t, faults.Calls(kvfault.Delete))
	})
}

// Invariant 5: a leader hands over what is its own.
func TestALeaderWhoseRecordIsAnothersByNowHandsNothingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := twice(store)
		stop := b.succession(faults.Store, store)
		faults.On(kvfault.Watch).DropRequests()
		rec, err := store.Get(t.Context(), b.name)
		require.NoError(t, err)
		z, err := store.Swap(t.Context(), b.name, rec, kv.Record{Signature: "z/1", TTL: ttl}) // nor is it vacant for b
		require.NoError(t, err)
		require.ErrorIs(t, stop(), context.Canceled)
		synctest.Wait()
		rec, err = store.Get(t.Context(), b.name)
		require.NoError(t, err)
		require.Equal(t, z, rec)
		faults.Heal()
	})
}

// Resign says that somebody else may have led only if nobody was handed the safe.
func TestALeaderThatIsNotToldThatItHasHandedOverHasLostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a", firstCome).Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		faults.On(kvfault.HandOver).Next(1).FailReplies(errStore)
		require.NoError(t, term.Resign(t.Context()))
		synctest.Wait()
		require.Equal(t, "b", b.leaders())
	})
}

// A record that the leader had as heir, and could not remove, is nobody's to lead by.
func TestALeaderDoesNotHandOverToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := twice(store)
		faults.heirs.On(kvfault.Delete).Fail(errStore)
		stop := b.run(b.candidate(faults.Store, "a", firstCome), "a")
		for b.leaders() == "" {
			time.Sleep(time.Millisecond)
		}
		require.ErrorIs(t, stop(), context.Canceled)
		requireVacant(t, store, b.name)
	})
}

// A candidate that wants no heir needs no permission for what is beside the safe.
func TestWithoutAnHeirNobodyAsksForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := twice(memkv.New())
		stop := b.run(b.candidate(faults.Store, "a", noHeir), "a")
		time.Sleep(ttl)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Zero(t, requestsTo(faults.heirs))
	})
}

// How long a leader led is not known to the moment: its record outlived it.
func TestAStrikeIsForATermWithoutTheTimeForWhichItsRecordFaded(t *testing.T) {
	plain, queue := func() kv.Store { return memkv.New() }, func() kv.Store { return memkv.NewQueue() }
	for name, c := range map[string]struct {
		leads  time.Duration
		struck bool
		store  func() kv.Store
	}{
		"just before Stability":           {ttl * 5 / 2, true, plain},
		"after Stability":                 {ttl * 9 / 2, false, plain},
		"told by one who waited in line":  {ttl * 5 / 2, true, queue}, // whose note is older than the term
		"and not by one who waited there": {ttl * 9 / 2, false, queue},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBallot(t)
				store := c.store()
				faults := kvfault.Wrap(store)
				b.run(b.candidate(store, "b", byRank(0)), "b") // who sees all terms begin
				time.Sleep(ttl)
				b.run(b.candidate(faults.Store, "a", byRank(1)), "a")
				for b.leaders() != "b a" {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(c.leads)
				faults.On().DropRequests()
				b.within(2*ttl, "b a b")
				synctest.Wait()
				rec, err := store.Get(t.Context(), b.name)
				require.NoError(t, err)
				require.Equal(t, c.struck, containsStrike(rec.Note), rec.Note)
				faults.Heal()
			})
		})
	}
}

func containsStrike(note string) bool { return strings.Contains(note, `"strikes":{"a":1}`) }

// The work that stops with its term may have stopped before the campaign has been told
// that the heir was called.
func TestATransferIsToItsHeirHoweverSoonTheWorkStops(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			seen := p.states()
			go func() { _ = p.leader.Transfer(t.Context(), "b") }()
			<-p.leader.Context().Done()
			require.ErrorIs(t, p.stopA(), context.Canceled)
			synctest.Wait()
			require.Equal(t, []string{"a", "b"}, seen())
		})
	}
}
