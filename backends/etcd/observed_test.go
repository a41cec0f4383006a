package etcdkv_test

import (
	"crypto/rand"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/kv/kvtest"
)

// brief is the shortest TTL that observers judge.
const brief = 500 * time.Millisecond

func TestAnObservedStoreKeepsTheContract(t *testing.T) {
	var sent count
	addr := testenv.Etcd(t)
	kvtest.Run(t, kvtest.Backend{
		Open:     func(t testing.TB) kv.Store { return observed(t, &sent, addr) },
		Put:      func(t testing.TB, name, value string) { put(t, dial(t, nil, addr), name, value) },
		Remove:   func(t testing.TB, name string) { remove(t, dial(t, nil, addr), name) },
		Requests: sent.Load,
	})
}

// observed returns an observed store with a client of its own.
func observed(t testing.TB, sent *count, addrs ...string) *etcdkv.Observed {
	t.Helper()
	return observedBy(dial(t, sent, addrs...))
}

func observedBy(client *clientv3.Client) *etcdkv.Observed {
	return etcdkv.NewObserved(client, &etcdkv.ObservedOptions{Prefix: prefix})
}

// abandoned puts records with the shortest TTL into new safes, whose owner is not
// heard of again, and has every store see them.
func abandoned(t testing.TB, owner kv.Store, n int, observers ...kv.Store) (names []string, recs []kv.Record) {
	t.Helper()
	for range n {
		name, rec := rand.Text(), signed("abandoned")
		rec.TTL = brief
		rec, err := owner.Create(within(t, patience), name, rec)
		require.NoError(t, err)
		names, recs = append(names, name), append(recs, rec)
	}
	for _, s := range observers {
		for _, name := range names {
			_, _ = s.Get(within(t, patience), name) // the record, or nothing if it took too long
		}
	}
	return names, recs
}

func TestAnObservedRecordHasNoLeaseAndTakesItsTokenAlong(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	first := pair(t, client, name).Kvs[0]
	require.Zero(t, first.Lease)
	require.EqualValues(t, first.ModRevision, rec.Token)
	require.Zero(t, kv.DecodeObserved(string(first.Value)).Token, "it is the revision of this write")
	last := first.ModRevision
	for range 3 {
		now, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, now)
		rec = publish(t, store, name, rec, rec.Value+"+")
		at := pair(t, client, name).Kvs[0]
		require.Zero(t, at.Lease)
		require.Equal(t, first.CreateRevision, at.CreateRevision)
		require.Equal(t, rec.Token, kv.DecodeObserved(string(at.Value)).Token)
		require.GreaterOrEqual(t, at.ModRevision, last+2, "each of the two was a write")
		last = at.ModRevision
		seen, err := observed(t, nil, testenv.Etcd(t)).Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, rec, seen)
	}
}

func TestObservedTokensGrowAcrossDeletesAndRestarts(t *testing.T) {
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), observed(t, nil, server.Addr())
	var last uint64
	for what, step := range map[string]func(rec kv.Record){
		"deleted":   func(rec kv.Record) { require.NoError(t, store.Delete(within(t, patience), "safe", rec)) },
		"removed":   func(kv.Record) { remove(t, client, "safe") },
		"a restart": func(kv.Record) { remove(t, client, "safe"); server.Restart() },
		"taken over": func(rec kv.Record) {
			_, err := store.Swap(within(t, patience), "safe", rec, signed("v"))
			require.NoError(t, err)
			remove(t, client, "safe")
		},
		"a new value": func(rec kv.Record) { publish(t, store, "safe", rec, "new"); remove(t, client, "safe") },
	} {
		rec, err := store.Create(within(t, patience), "safe", signed("v"))
		require.NoError(t, err, what)
		require.Greater(t, rec.Token, last, what)
		require.NotErrorIs(t, err, kv.ErrHeld)
		step(rec)
		last = rec.Token
	}
}

func TestObserversJudgeTTLsThatNoLeaseHas(t *testing.T) {
	store := observed(t, nil, testenv.Etcd(t))
	for _, ttl := range []time.Duration{-1, 0, 1, brief - 1, math.MaxInt64} {
		_, err := store.Lifetime(ttl)
		require.ErrorIs(t, err, kv.ErrInvalid, ttl)
		rec := signed("v")
		rec.TTL = ttl
		_, err = store.Create(within(t, patience), rec.Signature, rec)
		require.ErrorIs(t, err, kv.ErrInvalid, ttl)
	}
	_, err := store.Lifetime(brief - 1)
	require.ErrorContains(t, err, "want one from 500ms")
	for _, ttl := range []time.Duration{brief, brief + 1, time.Duration(math.MaxInt64 - math.MaxInt64%int64(time.Millisecond))} {
		life, err := store.Lifetime(ttl)
		require.NoError(t, err)
		require.GreaterOrEqual(t, life.Min, ttl)
		rec := signed("v")
		rec.TTL = ttl
		got, err := store.Create(within(t, patience), rec.Signature, rec)
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.TTL, ttl)
		require.Less(t, got.TTL-ttl, time.Millisecond)
	}
	require.ErrorIs(t, etcdkv.NewObserved(nil, nil).Delete(t.Context(), "name", signed("")), kv.ErrInvalid)
	_, err = election.New(etcdkv.NewObserved(nil, nil), "name", nil)
	require.ErrorContains(t, err, "client is nil")
}

// The leader is cut off from the store altogether, and knows when its term is over
// by its own clock.
func TestALeaderOfHalfASecondIsFollowed(t *testing.T) {
	addr := testenv.Etcd(t)
	faults := kvfault.Wrap(observed(t, nil, addr))
	name := rand.Text()
	old := elected(t, faults, name, &election.Options{TTL: brief})
	follower, err := election.New(observed(t, nil, addr), name, &election.Options{TTL: brief})
	require.NoError(t, err)
	next := make(chan *election.Term, 1)
	go func() {
		defer close(next)
		if term, err := follower.Campaign(within(t, patience)); err == nil {
			next <- term
		}
	}()
	time.Sleep(brief)
	faults.On().DropRequests()
	cut := time.Now()
	term := <-next
	require.NotNil(t, term, "nobody has followed")
	t.Logf("a leader that was cut off was followed after %v", time.Since(cut))
	require.Error(t, old.Err(), "two lead at once")
	require.Greater(t, term.Token(), old.Token())
	_ = term.Resign(within(t, patience)) // it may have been lost on a busy machine
	faults.Heal()
}

// Both have judged the same revision, and both write.
func TestOneOfTwoObserversReplacesADeadRecord(t *testing.T) {
	addr := testenv.Etcd(t)
	one, two := observed(t, nil, addr), observed(t, nil, addr)
	names, recs := abandoned(t, observed(t, nil, addr), 50, one, two)
	time.Sleep(brief + brief/2)
	for i, name := range names {
		won := race(t, kv.ErrHeld,
			func() (kv.Record, error) { return one.Create(within(t, patience), name, signed("one")) },
			func() (kv.Record, error) { return two.Create(within(t, patience), name, signed("two")) })
		require.Greater(t, won.Token, recs[i].Token)
		got, err := observed(t, nil, addr).Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, won, got)
	}
}

// Its owner comes back at the moment at which it is replaced, and does not know how
// late it is. Whoever is told that the safe is its own is the only one.
func TestAnOwnerOrItsSuccessorIsRightNeverBoth(t *testing.T) {
	addr := testenv.Etcd(t)
	owner, rival := observed(t, nil, addr), observed(t, nil, addr)
	names, recs := abandoned(t, observed(t, nil, addr), 50, rival)
	time.Sleep(brief + brief/2)
	for i, name := range names {
		race(t, nil,
			func() (kv.Record, error) { return owner.Refresh(within(t, patience), name, recs[i]) },
			func() (kv.Record, error) { return rival.Create(within(t, patience), name, signed("rival")) })
	}
}

// race carries two calls out at once, of which one succeeds, and returns what that
// one returned. The other is refused.
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
