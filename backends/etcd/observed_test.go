package etcdkv_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/observer/observertest"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// brief is the shortest TTL that observers judge.
const brief = 500 * time.Millisecond

func TestAnObservedStoreKeepsTheContract(t *testing.T) {
	testenv.Long(t)
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

func TestObserversJudge(t *testing.T) {
	observertest.Run(t, func(t testing.TB) kv.Store { return observed(t, nil, testenv.Etcd(t)) })
}

func TestAnObservedStoreWithoutAClientIsRefused(t *testing.T) {
	require.ErrorIs(t, etcdkv.NewObserved(nil, nil).Delete(t.Context(), "name", signed("")), kv.ErrInvalid)
	_, err := election.New(etcdkv.NewObserved(nil, nil), "name", nil)
	require.ErrorContains(t, err, "client is nil")
}
