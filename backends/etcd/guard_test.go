package etcdkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// writes reports whether the store lets rec's owner write.
func writes(t testing.TB, client *clientv3.Client, store *etcdkv.Store, name string, rec kv.Record) bool {
	t.Helper()
	return writesIf(t, client, store.Guard(name, rec))
}

// writesIf reports whether the store writes under the condition.
func writesIf(t testing.TB, client *clientv3.Client, guard clientv3.Cmp) bool {
	t.Helper()
	resp, err := client.Txn(within(t, patience)).
		If(guard).
		Then(clientv3.OpPut(prefix+"guarded", "written")).
		Commit()
	require.NoError(t, err)
	return resp.Succeeded
}

// elected campaigns until it leads. The term's lease is given back in the end.
func elected(t testing.TB, store kv.Store, name string, opts *election.Options) *election.Term {
	t.Helper()
	c, err := election.New(store, name, opts)
	require.NoError(t, err)
	term, err := c.Campaign(within(t, 2*patience))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = term.Resign(ctx) // it may have been lost
	})
	return term
}

// The leader hears nothing and does nothing, until another leads. Then it goes on
// with what it was about to write.
func TestALeaderThatSleptBeyondItsTermIsRefused(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		server := testenv.Etcd(t)
		proxy := testenv.NewProxy(t, server)
		client, store := dial(t, nil, server), openWith(t, nil, options, server)
		name := signed("").Signature
		short := &election.Options{TTL: 3 * time.Second}
		old := elected(t, openWith(t, nil, options, proxy.Addr()), name, short)
		late := old.Record()
		require.True(t, writes(t, client, store, name, late))
		proxy.BlackHole()
		term := elected(t, store, name, short)
		require.Greater(t, term.Token(), old.Token())
		require.False(t, writes(t, client, store, name, late), "the old leader has written")
		require.True(t, writesIf(t, client, store.Guard(term.NamedRecord())))
		require.Error(t, old.Err())
		proxy.Heal()
	})
}

// One candidate leads in two elections. A guard is for the one whose term is given.
func TestAGuardIsForTheTermsOwnElection(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		one, two := elected(t, store, signed("").Signature, nil), elected(t, store, signed("").Signature, nil)
		name, rec := one.NamedRecord()
		another, _ := two.NamedRecord()
		require.False(t, writesIf(t, client, store.Guard(another, rec)))
		require.NoError(t, two.Resign(within(t, patience)))
		require.True(t, writesIf(t, client, store.Guard(one.NamedRecord())))
		require.True(t, writesIf(t, client, store.Guard(name, rec)))
		require.False(t, writesIf(t, client, store.Guard(two.NamedRecord())))
	})
}

func TestAGuardHoldsWhateverIsProclaimedMeanwhile(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		term := elected(t, store, name, nil)
		before := term.Record()
		for _, value := range []string{"one", "two"} {
			require.NoError(t, term.Proclaim(within(t, patience), value))
			require.True(t, writes(t, client, store, name, before))
			require.True(t, writes(t, client, store, name, term.Record()))
		}
		require.NoError(t, term.Resign(within(t, patience)))
		require.False(t, writes(t, client, store, name, before))
	})
}

func TestAGuardEndsWithAHandOver(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		for what, next := range map[string]func() kv.Record{
			"taken over":  func() kv.Record { return signed("next") },
			"handed over": func() kv.Record { _, heir := held(t, store); return heir },
		} {
			name, rec := held(t, store)
			require.True(t, writes(t, client, store, name, rec))
			now, err := store.Swap(within(t, patience), name, rec, next())
			require.NoError(t, err)
			require.False(t, writes(t, client, store, name, rec), what)
			require.True(t, writes(t, client, store, name, now), what)
		}
	})
}

// Whoever has led by it would go on passing its guard.
func TestASafeIsNotSignedAnewOnTheSameLease(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		rival := signed("rival")
		rival.Lease = rec.Lease
		_, err := store.Swap(within(t, patience), name, rec, rival)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "want another lease")
		require.True(t, writes(t, client, store, name, rec))
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// As the documentation warns: the guard is on the lease.
func TestAGuardHoldsAgainOnceItsLeaseHasTheSafeBack(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		second, other := held(t, store)
		_, err := store.Swap(within(t, patience), second, other, rec) // rec's lease lives on
		require.NoError(t, err)
		now, err := store.Swap(within(t, patience), name, rec, signed("between"))
		require.NoError(t, err)
		require.False(t, writes(t, client, store, name, rec))
		again := signed("again")
		again.Lease = rec.Lease
		_, err = store.Swap(within(t, patience), name, now, again)
		require.NoError(t, err)
		require.True(t, writes(t, client, store, name, rec))
	})
}

// A key that is missing has no lease, and neither has a record that was not
// read from this store. They are not equal.
func TestAGuardNeverHoldsForNothing(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		for what, other := range map[string]kv.Record{
			"nothing":         {},
			"no lease":        {Signature: rec.Signature, Token: rec.Token},
			"not a lease":     {Signature: rec.Signature, Token: rec.Token, Lease: "lease"},
			"another's lease": {Signature: rec.Signature, Token: rec.Token, Lease: "1"},
			"foreign":         {Value: "v", Lease: rec.Lease, Foreign: true},
		} {
			require.False(t, writes(t, client, store, name, other), what)
			require.False(t, writes(t, client, store, name+"-vacant", other), what)
		}
		require.False(t, writes(t, client, store, name+"-vacant", rec))
		require.False(t, writes(t, client, store, "", rec), "no name")
		require.False(t, writesIf(t, client, etcdkv.New(client, nil).Guard("", rec)), "no key at all")
		require.False(t, writesIf(t, client, etcdkv.New(client, nil).Guard("", kv.Record{})), "no key and no lease")
		removeAll(t, client, options, name)
		require.False(t, writes(t, client, store, name, rec))
		putOver(t, client, options, name, "somebody")
		require.False(t, writes(t, client, store, name, rec))
	})
}

// A foreign holder is nobody's leader, and one that comes to the key ends the
// guard.
func TestAGuardEndsWhenARecordIsOverwritten(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options etcdkv.Options) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		putOver(t, client, options, name, "somebody")
		require.False(t, writes(t, client, store, name, rec))
	})
}
