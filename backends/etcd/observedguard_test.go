package etcdkv_test

import (
	"crypto/rand"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// passes reports whether the store lets rec's owner write.
func passes(t testing.TB, client *clientv3.Client, store *etcdkv.Observed, name string, rec kv.Record) bool {
	t.Helper()
	resp, err := client.Txn(within(t, patience)).
		If(store.Guard(name, rec)...).
		Then(clientv3.OpPut(prefix+"guarded", "written")).
		Commit()
	require.NoError(t, err)
	return resp.Succeeded
}

func TestAnObservedGuardHoldsThroughRefreshesAndValues(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	for _, signature := range []string{"", `","ttl_ms":`, `"`, `\`, "<&>\u2028", "ключ", "{}-,", "a\x00b"} {
		rec := signed("v")
		name := rec.Signature
		rec.Signature += signature
		rec, err := store.Create(within(t, patience), name, rec)
		require.NoError(t, err)
		before := rec
		for _, value := range []string{"", "one", "\xff\x00", "two"} {
			require.True(t, passes(t, client, store, name, before), signature)
			_, err := store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.True(t, passes(t, client, store, name, before), signature)
			rec = publish(t, store, name, rec, value)
			require.True(t, passes(t, client, store, name, rec), signature)
		}
		longer := rec
		longer.Signature += "!"
		shorter := rec
		shorter.Signature = rec.Signature[:len(rec.Signature)-1]
		require.False(t, passes(t, client, store, name, longer))
		require.False(t, passes(t, client, store, name, shorter))
		next, err := store.Swap(within(t, patience), name, rec, signed("next"))
		require.NoError(t, err)
		require.False(t, passes(t, client, store, name, rec), signature)
		require.True(t, passes(t, client, store, name, next))
		require.NoError(t, store.Delete(within(t, patience), name, next))
		require.False(t, passes(t, client, store, name, next))
	}
}

// A create that comes late brings the signature back, though others led since.
func TestAnObservedGuardEndsWithItsToken(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	again, err := store.Create(within(t, patience), name, rec)
	require.NoError(t, err)
	require.Greater(t, again.Token, rec.Token)
	require.False(t, passes(t, client, store, name, rec))
	require.True(t, passes(t, client, store, name, again))
}

func TestALeaderWhoseRecordObserversHaveReplacedIsRefused(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	faults := kvfault.Wrap(observed(t, nil, addr))
	name := rand.Text()
	old := elected(t, faults, name, &election.Options{TTL: brief})
	late := old.Record()
	require.True(t, passes(t, client, store, name, late))
	faults.On().DropRequests()
	term := elected(t, store, name, &election.Options{TTL: 20 * brief})
	require.False(t, passes(t, client, store, name, late), "the old leader has written")
	require.True(t, passes(t, client, store, name, term.Record()))
	faults.Heal()
}

func TestAnObservedGuardNeverHoldsForNothing(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	name, rec := held(t, store)
	for what, other := range map[string]kv.Record{
		"nothing":           {},
		"no signature":      {Token: rec.Token},
		"no token":          {Signature: rec.Signature},
		"an earlier token":  {Signature: rec.Signature, Token: rec.Token - 1},
		"an endless token":  {Signature: rec.Signature, Token: math.MaxUint64},
		"another signature": {Signature: "other", Token: rec.Token},
		"foreign":           {Signature: rec.Signature, Token: rec.Token, Foreign: true},
	} {
		require.False(t, passes(t, client, store, name, other), what)
		require.False(t, passes(t, client, store, name+"-vacant", other), what)
	}
	require.False(t, passes(t, client, store, name+"-vacant", rec))
	require.False(t, passes(t, client, store, "", rec), "no name")
	put(t, client, name, "somebody")
	require.False(t, passes(t, client, store, name, rec))
	remove(t, client, name)
	require.False(t, passes(t, client, store, name, rec))

	_, rec = held(t, open(t, nil, addr))
	require.False(t, passes(t, client, store, rec.Signature, rec), "a record that the store judges")
}
