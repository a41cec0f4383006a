package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// What candidates do where nobody says who succeeds whom.

func TestALeaderHandsOverToWhoeverCameFirstIfNobodySaysOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		for _, id := range []string{"b", "c"} {
			b.run(b.candidate(store, id), id)
			synctest.Wait()
		}
		next, err := election.CurrentHeir(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "b", next.ID)
		require.NoError(t, term.Resign(t.Context()))
		require.Equal(t, 1, faults.Calls(kvfault.HandOver))
		require.Equal(t, 1, faults.Calls(kvfault.Delete), "a vacate, which is refused: no watch has shown the heir yet")
		synctest.Wait()
		require.Equal(t, "b", b.leaders())
	})
}

// A leader whose watch of the heir's safe is late looks there before it empties its own.
func TestALeaderLooksForAnHeirThatItsWatchHasNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		faults.heirs.On(kvfault.Watch).DropReplies()
		b.run(b.candidate(store, "b"), "b")
		synctest.Wait()
		require.NoError(t, term.Resign(t.Context()))
		require.Equal(t, 1, faults.Calls(kvfault.HandOver))
		require.Equal(t, 1, faults.Calls(kvfault.Delete), "a vacate, which is refused")
		synctest.Wait()
		require.Equal(t, "b", b.leaders())
	})
}

// What a succession costs beyond that, only those pay who ask for one.
func TestALeaderWatchesForRequestsOnlyIfItIsTo(t *testing.T) {
	for name, c := range map[string]struct {
		watches int
		change  func(*election.Options)
	}{
		"by default":        {2, func(*election.Options) {}},
		"without an heir":   {1, noHeir},
		"with a succession": {3, firstCome},
		"with requests":     {3, func(o *election.Options) { o.Requests = true }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
				b.run(b.candidate(faults.Store, "a", c.change), "a")
				time.Sleep(ttl)
				require.Equal(t, c.watches, faults.Calls(kvfault.Watch))
			})
		})
	}
}

// Nobody may have to be granted more of the store than the safe.
func TestACandidateThatCannotBeHeirIsElectedAllTheSame(t *testing.T) {
	denied := errors.New("permission denied")
	for name, refusal := range map[string]error{
		"not allowed":                denied,
		"a name that nobody can use": fmt.Errorf("%w: no colons", kv.ErrInvalid),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				stopA := b.run(b.candidate(store, "a", noHeir), "a")
				synctest.Wait()
				faults := twice(store)
				faults.heirs.On().Fail(denied)
				faults.heirs.On(kvfault.Create).Fail(refusal)
				stopB := b.run(b.candidate(faults.Store, "b"), "b")
				time.Sleep(100 * ttl)
				require.LessOrEqual(t, requestsTo(faults.heirs)+requestsTo(faults.Link), 1400, "in 1000 s")
				stopA()
				time.Sleep(ttl / 2)
				require.Equal(t, "a b", b.leaders())
				time.Sleep(3 * ttl)
				stopped := time.Now()
				stopB()
				require.LessOrEqual(t, time.Since(stopped), ttl)
				requireVacant(t, store, b.name)
			})
		})
	}
}

func TestWhatIsNoHeirsKeepsNobodyFromBeingElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		store.Put(b.name+":heir", "somebody's")
		stops := []func() error{}
		for _, id := range []string{"a", "b", "c"} {
			stops = append(stops, b.run(b.candidate(store, id), id))
			time.Sleep(ttl)
		}
		require.ErrorIs(t, stops[0](), context.Canceled)
		time.Sleep(ttl / 10)
		require.Regexp(t, "^a [bc]$", b.leaders())
		rec, err := store.Get(t.Context(), b.name+":heir")
		require.NoError(t, err)
		require.Equal(t, "somebody's", rec.Value)

		store.Remove(b.name + ":heir")
		time.Sleep(ttl)
		_, err = election.CurrentHeir(t.Context(), store, b.name)
		require.NoError(t, err)
	})
}

func TestAnAttemptThatIsMadeOnceCostsOneSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := twice(memkv.New())
		term, err := b.candidate(faults.Store, "a").TryCampaign(t.Context())
		require.NoError(t, err)
		time.Sleep(ttl)
		require.ErrorIs(t, term.Transfer(t.Context(), "b"), election.ErrNoSuccession)
		require.NoError(t, term.Resign(t.Context()))
		require.Zero(t, requestsTo(faults.heirs))
	})
}

func TestWhereCandidatesWaitInLineNobodyIsHeirUnlessASuccessionIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		heir   error
		change func(*election.Options)
	}{
		"by default": {election.ErrNoHeir, func(*election.Options) {}}, "with a succession": {nil, firstCome},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.NewQueue(), newBallot(t)
				for _, id := range []string{"a", "b"} {
					b.run(b.candidate(store, id, c.change), id)
					time.Sleep(ttl)
				}
				_, err := election.CurrentHeir(t.Context(), store, b.name)
				require.ErrorIs(t, err, c.heir)
			})
		})
	}
}

// A fleet is not changed at one instant.
func TestThoseWithAndWithoutAnHeirShareAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		for i := range 6 {
			id, change := string(rune('a'+i)), func(o *election.Options) { o.NoHeir = i%2 == 0 }
			b.hold(b.candidate(store, id, change), id)
			synctest.Wait()
		}
		time.Sleep(100 * ttl)
		terms := b.all()
		require.Greater(t, len(terms), 80, "each leads for a TTL")
	})
}

// It competed for the leader's key for as long as it could not have the heir's place.
func TestAnHeirThatCannotClaimStandsAgainOnceItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a"), "a")
		synctest.Wait()
		faults := twice(store)
		faults.heirs.On().DropRequests()
		b.run(b.candidate(faults.Store, "b"), "b")
		time.Sleep(ttl / 10)
		faults.On().DropRequests()
		time.Sleep(10 * ttl)
		faults.heirs.Heal()
		time.Sleep(10 * ttl)
		faults.Heal()
		time.Sleep(10 * ttl)
		next, err := election.CurrentHeir(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "b", next.ID)
	})
}
