// Package observertest tests what the stores have in common in which observers judge expiry,
// on real servers. It is for tests only.
package observertest

import (
	"context"
	"crypto/rand"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// Brief is the shortest TTL that observers judge.
const Brief = 500 * time.Millisecond

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

// Run runs all cases. Each call of open returns a store with a memory of its own, all on the
// same servers.
func Run(t *testing.T, open func(t testing.TB) kv.Store) {
	for name, test := range map[string]func(t *testing.T, open func(t testing.TB) kv.Store){
		"TTLs that no lease has are judged":                  shortAndLongTTLs,
		"a leader of half a second is followed":              leaderIsFollowed,
		"one of two observers replaces a dead record":        oneReplaces,
		"an owner or its successor is right, and never both": ownerOrSuccessor,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func shortAndLongTTLs(t *testing.T, open func(t testing.TB) kv.Store) {
	store := open(t)
	for _, ttl := range []time.Duration{-1, 0, 1, Brief - 1, math.MaxInt64} {
		_, err := store.Lifetime(ttl)
		require.ErrorIs(t, err, kv.ErrInvalid, ttl)
		_, err = store.Create(within(t), rand.Text(), signed("v", ttl))
		require.ErrorIs(t, err, kv.ErrInvalid, ttl)
	}
	_, err := store.Lifetime(Brief - 1)
	require.ErrorContains(t, err, "500ms", "the error says which it takes")
	for _, ttl := range []time.Duration{Brief, Brief + 1, 365 * 24 * time.Hour} {
		life, err := store.Lifetime(ttl)
		require.NoError(t, err)
		require.GreaterOrEqual(t, life.Min, ttl)
		got, err := store.Create(within(t), rand.Text(), signed("v", ttl))
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.TTL, ttl)
		require.Less(t, got.TTL-ttl, time.Millisecond)
	}
}

// The leader is cut off from the store altogether, and knows by its own clock when its term
// is over.
func leaderIsFollowed(t *testing.T, open func(t testing.TB) kv.Store) {
	faults, name := kvfault.Wrap(open(t)), rand.Text()
	first, err := election.New(faults.Store, name, &election.Options{TTL: Brief})
	require.NoError(t, err)
	old, err := first.Campaign(within(t))
	require.NoError(t, err)
	follower, err := election.New(open(t), name, &election.Options{TTL: Brief})
	require.NoError(t, err)
	next := make(chan *election.Term, 1)
	go func() {
		defer close(next)
		if term, err := follower.Campaign(within(t)); err == nil {
			next <- term
		}
	}()
	time.Sleep(Brief)
	faults.On().DropRequests()
	cut := time.Now()
	term := <-next
	require.NotNil(t, term, "nobody has followed")
	t.Logf("a leader that was cut off was followed after %v", time.Since(cut))
	require.Error(t, old.Err(), "two lead at once")
	require.Greater(t, term.Token(), old.Token())
	_ = term.Resign(within(t)) // it may have been lost on a busy machine
	faults.Heal()
	_ = old.Resign(within(t)) // it is lost
}

// Both have judged the same revision, and both write.
func oneReplaces(t *testing.T, open func(t testing.TB) kv.Store) {
	one, two := open(t), open(t)
	names, recs := abandoned(t, open(t), one, two)
	for i, name := range names {
		won := race(t, kv.ErrHeld,
			func() (kv.Record, error) { return one.Create(within(t), name, signed("one", time.Minute)) },
			func() (kv.Record, error) { return two.Create(within(t), name, signed("two", time.Minute)) })
		require.Greater(t, won.Token, recs[i].Token)
		got, err := open(t).Get(within(t), name)
		require.NoError(t, err)
		require.Equal(t, won, got)
	}
}

// The owner comes back at the moment at which it is replaced, and does not know how late it
// is. Of the two, one is told that the safe is its own.
func ownerOrSuccessor(t *testing.T, open func(t testing.TB) kv.Store) {
	owner, rival := open(t), open(t)
	names, recs := abandoned(t, open(t), rival)
	for i, name := range names {
		race(t, nil,
			func() (kv.Record, error) { return owner.Refresh(within(t), name, recs[i]) },
			func() (kv.Record, error) { return rival.Create(within(t), name, signed("rival", time.Minute)) })
	}
}

// abandoned puts records with the shortest TTL into new safes, has each observer see them,
// and waits until they are over.
func abandoned(t testing.TB, owner kv.Store, observers ...kv.Store) (names []string, recs []kv.Record) {
	for range 50 {
		name := rand.Text()
		rec, err := owner.Create(within(t), name, signed("abandoned", Brief))
		require.NoError(t, err)
		names, recs = append(names, name), append(recs, rec)
	}
	for _, s := range observers {
		for _, name := range names {
			_, _ = s.Get(within(t), name) // the record, or nothing if it took too long
		}
	}
	time.Sleep(Brief + Brief/2)
	return names, recs
}

// race carries two calls out at once, of which one succeeds, and returns what that one
// returned. The other fails, with refused if that is not nil.
func race(t testing.TB, refused error, calls ...func() (kv.Record, error)) (won kv.Record) {
	t.Helper()
	recs, errs := make([]kv.Record, len(calls)), make([]error, len(calls))
	var both sync.WaitGroup
	for i, call := range calls {
		both.Go(func() { recs[i], errs[i] = call() })
	}
	both.Wait()
	winners := 0
	for i, err := range errs {
		if err == nil {
			won, winners = recs[i], winners+1
			continue
		}
		if refused != nil {
			require.ErrorIs(t, err, refused)
		}
	}
	require.Equal(t, 1, winners, "%v", errs)
	return won
}

func signed(value string, ttl time.Duration) kv.Record {
	return kv.Record{Signature: rand.Text(), Value: value, TTL: ttl}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}
