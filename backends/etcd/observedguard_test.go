package etcdkv_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv/kvfault"
)

func TestAnObservedGuardIsForOneSignature(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	guardsOneSignature(t, client, store, store)
}

func TestAnObservedGuardEndsWithItsToken(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), observed(t, nil, testenv.Etcd(t))
	guardsOneToken(t, client, store, store)
}

func TestALeaderWhoseRecordObserversHaveReplacedIsRefused(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	faults := kvfault.Wrap(observed(t, nil, addr))
	name := rand.Text()
	old := elected(t, faults.Store, name, &election.Options{TTL: brief})
	late := old.Record()
	require.True(t, writes(t, client, store, name, late))
	faults.On().DropRequests()
	term := elected(t, store, name, &election.Options{TTL: 20 * brief})
	require.False(t, writes(t, client, store, name, late), "the old leader has written")
	require.True(t, writes(t, client, store, name, term.Record()))
	faults.Heal()
}

func TestAnObservedGuardNeverHoldsForNothing(t *testing.T) {
	addr := testenv.Etcd(t)
	client, store := dial(t, nil, addr), observed(t, nil, addr)
	name, rec := held(t, store)
	neverHolds(t, client, store, name, rec)
	put(t, client, name, "somebody")
	require.False(t, writes(t, client, store, name, rec))
	remove(t, client, name)
	require.False(t, writes(t, client, store, name, rec))

	_, rec = held(t, open(t, nil, addr))
	require.False(t, writes(t, client, store, rec.Signature, rec), "a record that the store judges")
}
