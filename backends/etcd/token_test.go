package etcdkv_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A put over a live key keeps the key's create revision, and each change of a
// value moves its mod revision. Neither may touch the token.
func TestATokenIsTheRevisionThatBroughtTheSignatureIn(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	name, rec := held(t, store)
	second, heir := held(t, store)
	check := func(rec kv.Record, token uint64) {
		t.Helper()
		require.Equal(t, token, rec.Token)
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		got, err = store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	}
	publish := func(value string) {
		t.Helper()
		var err error
		rec, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: value})
		require.NoError(t, err)
	}
	check(rec, rec.Revision)
	first := rec.Token
	publish("one")
	check(rec, first)
	publish("two")
	check(rec, first)

	rec, err := store.Swap(within(t, patience), name, rec, heir)
	require.NoError(t, err)
	check(rec, rec.Revision)
	handed := rec.Token
	require.Greater(t, handed, first)
	require.Equal(t, heir.Lease, rec.Lease)
	publish("three")
	check(rec, handed)
	publish("four")

	server.Restart()
	check(rec, handed)
	publish("five")
	check(rec, handed)

	taken, err := store.Swap(within(t, patience), name, rec, signed("taken over"))
	require.NoError(t, err)
	check(taken, taken.Revision)
	require.Greater(t, taken.Token, handed)
	require.NoError(t, store.Delete(within(t, patience), name, taken))
	server.Restart()
	again, err := store.Create(within(t, patience), name, signed("again"))
	require.NoError(t, err)
	check(again, again.Revision)
	require.Greater(t, again.Token, taken.Token)

	got, err := store.Refresh(within(t, patience), second, heir)
	require.NoError(t, err, "the heir's own safe")
	require.Equal(t, heir, got)
	resp, err := client.Get(within(t, patience), prefix+name)
	require.NoError(t, err)
	require.NotContains(t, string(resp.Kvs[0].Value), "token", "the text of a new signature has no token")
}

// The two revisions are of the whole store, so another safe's name never makes
// a record right.
func TestASafeIsNotSwappedWithAnothersRecord(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	one, first := held(t, store)
	_, second := held(t, store)
	_, err := store.Swap(within(t, patience), one, second, signed("next"))
	require.ErrorIs(t, err, kv.ErrStale)
	second.Revision = first.Revision
	_, err = store.Swap(within(t, patience), one, second, signed("next"))
	require.ErrorIs(t, err, kv.ErrStale)
}

func TestStoresWithDifferentPrefixesDoNotMeet(t *testing.T) {
	server := testenv.Etcd(t)
	name, rec := held(t, open(t, nil, server))
	bare := newStore(t, "", server)
	got, err := bare.Get(within(t, patience), prefix+name)
	require.NoError(t, err)
	require.Equal(t, rec, got)
	_, err = newStore(t, rand.Text(), server).Get(within(t, patience), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}
