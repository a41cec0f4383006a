package etcdkv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// requireForeign requires that a store takes what is at a name for somebody else's
// lock, keeps out, and leaves it as it is.
func requireForeign(t testing.TB, client *clientv3.Client, store kv.Store, name, what string) kv.Record {
	t.Helper()
	before := pair(t, client, name).Kvs[0]
	seen, err := store.Get(within(t, patience), name)
	require.NoError(t, err, what)
	require.True(t, seen.Foreign, what)
	_, err = store.Create(within(t, patience), name, signed("mine"))
	require.ErrorIs(t, err, kv.ErrHeld, what)
	_, err = store.Refresh(within(t, patience), name, seen)
	require.ErrorIs(t, err, kv.ErrInvalid, what)
	_, err = store.Swap(within(t, patience), name, seen, signed("mine"))
	require.ErrorIs(t, err, kv.ErrInvalid, what)
	require.ErrorIs(t, store.Delete(within(t, patience), name, seen), kv.ErrInvalid, what)
	require.Equal(t, before, pair(t, client, name).Kvs[0], what)
	return seen
}

// The record is dead, and every observer may replace it.
func TestAStoreThatJudgesLeavesObservedRecordsAlone(t *testing.T) {
	addr := testenv.Etcd(t)
	client := dial(t, nil, addr)
	for _, options := range everyLayout()[:2] {
		names, recs := abandoned(t, observed(t, nil, addr), 1)
		store := openWith(t, nil, options, addr)
		w := watching(t, store, names[0])
		first := w.next()
		require.NoError(t, first.err)
		for range 3 {
			time.Sleep(brief)
			seen := requireForeign(t, client, store, names[0], title(options))
			require.True(t, seen.Permanent)
			require.Equal(t, first.rec, seen)
			_, err := store.Refresh(within(t, patience), names[0], recs[0])
			require.ErrorIs(t, err, kv.ErrStale)
			require.ErrorIs(t, store.Delete(within(t, patience), names[0], recs[0]), kv.ErrStale)
		}
		require.Empty(t, w.seen)
	}
}

func TestObserversLeaveRecordsWithALeaseAlone(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	for _, options := range everyLayout()[:2] {
		owner := openWith(t, nil, options, addr)
		name, rec := held(t, owner)
		w := watching(t, store, name)
		require.True(t, w.next().rec.Foreign)
		require.False(t, requireForeign(t, client, store, name, title(options)).Permanent)
		got, err := owner.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.Empty(t, w.seen)
		require.NoError(t, owner.Delete(within(t, patience), name, rec))
		require.True(t, w.next().vacant())
	}
}

// Nothing changes there for longer than the text says that it lives.
func TestWhatLooksLikeAnObservedRecordIsForeign(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	lease, err := client.Grant(within(t, patience), 600)
	require.NoError(t, err)
	ours := kv.EncodeObserved(kv.Record{Signature: "s", TTL: brief, Token: 1})
	stores := kv.Encode(kv.Record{Signature: "s", TTL: brief})
	places := map[string]func(name string){
		"data":                     func(name string) { put(t, client, name, "precious") },
		"nothing":                  func(name string) { put(t, client, name, "") },
		"our text with a lease":    func(name string) { put(t, client, name, ours, clientv3.WithLease(lease.ID)) },
		"a store's text":           func(name string) { put(t, client, name, stores) },
		"a store's record":         func(name string) { put(t, client, name, stores, clientv3.WithLease(lease.ID)) },
		"a text from the future":   func(name string) { put(t, client, name, `{"election":2,"signature":"s","ttl_ms":500,"observed":true}`) },
		"a text without signature": func(name string) { put(t, client, name, `{"election":1,"ttl_ms":500,"observed":true}`) },
	}
	run := signed("").Signature
	for what, place := range places {
		place(run + what)
	}
	for range 2 {
		for what := range places {
			requireForeign(t, client, store, run+what, what)
		}
		time.Sleep(brief + brief/4)
	}
}

// What comes to the key while its owner looks away is never judged by the record
// that was there.
func TestAnObserverDoesNotReplaceWhatHasTakenADeadRecordsPlace(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	names, _ := abandoned(t, observed(t, nil, addr), 1, store)
	time.Sleep(brief + brief/4)
	put(t, client, names[0], "precious")
	_, err := store.Create(within(t, patience), names[0], signed("mine"))
	require.ErrorIs(t, err, kv.ErrHeld)
	require.Equal(t, "precious", string(pair(t, client, names[0]).Kvs[0].Value))
}
