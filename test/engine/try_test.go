package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestOneAttemptAtAVacantSafeIsATermLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		term, err := b.candidate(store, "a").TryCampaign(ctx)
		require.NoError(t, err)
		b.count("a", term)
		time.Sleep(10 * ttl)
		require.NoError(t, term.Err())
		rec, err := store.Get(t.Context(), b.name)
		require.NoError(t, err)
		require.Equal(t, rec, term.Record())
		name, named := term.NamedRecord()
		require.Equal(t, b.name, name)
		require.Equal(t, rec, named)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestOneAttemptWaitsForNobodyAndWritesNothing(t *testing.T) {
	for what, occupy := range map[string]func(b *ballot, store *memkv.Store){
		"a leader":       func(b *ballot, store *memkv.Store) { b.run(b.candidate(store, "a"), "a") },
		"a foreign lock": func(b *ballot, store *memkv.Store) { store.Put(b.name, "host-7") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				occupy(b, store)
				synctest.Wait()
				before, err := store.Get(t.Context(), b.name)
				require.NoError(t, err)

				faults := kvfault.Wrap(store)
				began := time.Now()
				term, err := b.candidate(faults.Store, "b").TryCampaign(t.Context())
				require.Nil(t, term)
				require.ErrorIs(t, err, election.ErrHeld)
				require.ErrorIs(t, err, kv.ErrHeld, "what the store says is kept")
				require.Zero(t, time.Since(began))
				require.Equal(t, 1, faults.Calls(kvfault.Create))
				require.Equal(t, 1, faults.Calls(kvfault.Get), "to name the holder")
				require.Zero(t, faults.Calls(kvfault.Delete)+faults.Calls(kvfault.Watch))

				after, err := store.Get(t.Context(), b.name)
				require.NoError(t, err)
				require.Equal(t, before, after)
			})
		})
	}
}

func TestOneAttemptWhoseAnswerIsLostLeavesNothingBehind(t *testing.T) {
	for what, fault := range map[string]func(kvfault.Faults){
		"lost": kvfault.Faults.DropReplies,
		"an error": func(f kvfault.Faults) {
			f.FailReplies(errors.New("connection reset"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := kvfault.Wrap(store)
				fault(faults.On(kvfault.Create))
				term, err := b.candidate(faults.Store, "a").TryCampaign(t.Context())
				require.Nil(t, term)
				require.Error(t, err)
				require.NotErrorIs(t, err, election.ErrHeld)
				_, err = store.Get(t.Context(), b.name)
				require.ErrorIs(t, err, kv.ErrVacant)
			})
		})
	}
}

func TestOneAttemptInBadHealthAsksTheStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, sick := kvfault.Wrap(memkv.New()), errors.New("sick")
		c, err := election.New(faults.Store, "e", &election.Options{TTL: ttl, Health: func(context.Context) error { return sick }})
		require.NoError(t, err)
		term, err := c.TryCampaign(t.Context())
		require.Nil(t, term)
		require.ErrorIs(t, err, sick)
		require.Zero(t, faults.Calls(kvfault.Create))
	})
}
