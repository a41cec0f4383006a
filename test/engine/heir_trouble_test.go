package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestAnHeirTriesAgainToTellWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", byRank(0)), "a")
		time.Sleep(ttl)
		faults := twice(store)
		faults.heirs.On(kvfault.Swap).Next(2).Fail(errStore)
		b.run(b.candidate(faults.Store, "b", byRank(0)), "b")
		time.Sleep(ttl)
		rec, err := store.Get(t.Context(), b.name+":heir")
		require.NoError(t, err)
		require.Contains(t, rec.Note, `"under":{"id":"a"`)
		require.Equal(t, 3, faults.heirs.Calls(kvfault.Swap))
	})
}

func TestAnHeirDoesNotTryAgainWhatTheStoreRefusesForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", byRank(0)), "a")
		time.Sleep(ttl)
		faults := twice(store)
		faults.heirs.On(kvfault.Swap).Fail(kv.ErrInvalid)
		b.run(b.candidate(faults.Store, "b", byRank(0)), "b")
		time.Sleep(5 * ttl)
		require.Equal(t, 1, faults.heirs.Calls(kvfault.Swap))
		faults.heirs.Heal()
	})
}

func TestACandidateThatGivesUpWaitingWasNeverHeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		roles := []election.Role{}
		c := p.candidate(p.store, "c", firstCome, func(o *election.Options) {
			o.OnRole = func(r election.Role) { roles = append(roles, r) }
		})
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err := c.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []election.Role{election.RoleCandidate, election.RoleIdle}, roles)
	})
}

func TestACampaignThatTheStoreRefusesForGoodEnds(t *testing.T) {
	for name, on := range map[string]func(twofold) *kvfault.Link{
		"as candidate": func(s twofold) *kvfault.Link { return s.heirs },
		"as heir":      func(s twofold) *kvfault.Link { return s.Link },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				on(faults).On(kvfault.Create).Fail(kv.ErrInvalid)
				began := time.Now()
				_, err := b.candidate(faults.Store, "a", byRank(0)).Campaign(t.Context())
				require.ErrorIs(t, err, kv.ErrInvalid)
				require.Less(t, time.Since(began), ttl)
				requireVacant(t, store, b.name+":heir")
			})
		})
	}
}

// Whoever writes what no leader would writes it in vain.
func TestACallThatDoesNotSayWhoCallsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		_, err := store.Create(t.Context(), b.name+":heir", kv.Record{Signature: "z/1", Note: `{"calls":"b"}`, TTL: time.Hour})
		require.NoError(t, err)
		b.run(b.candidate(store, "b", firstCome), "b")
		b.within(ttl, "b")
	})
}

// What the leader had as heir is no reason to give its record up sooner.
func TestALeaderThatWasHeirIsReleasedUntilItsRecordHasFaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		faults.heirs.On(kvfault.Delete).Fail(errStore)
		term, err := b.candidate(faults.Store, "a", byRank(0)).Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Delete).Fail(errStore)
		time.AfterFunc(7*ttl/10, func() {
			faults.Heal()
			faults.heirs.Heal()
		})
		require.NoError(t, term.Resign(t.Context()))
		requireVacant(t, store, b.name)
		requireVacant(t, store, b.name+":heir")
	})
}
