package etcdkv_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func leaseOf(t testing.TB, rec kv.Record) clientv3.LeaseID {
	t.Helper()
	id, err := strconv.ParseInt(rec.Lease, 16, 64)
	require.NoError(t, err)
	return clientv3.LeaseID(id)
}

// requireAlive requires that etcd itself sees nothing wrong with the lease.
func requireAlive(t testing.TB, client *clientv3.Client, rec kv.Record) {
	t.Helper()
	resp, err := client.KeepAliveOnce(within(t, patience), leaseOf(t, rec))
	require.NoError(t, err)
	require.Positive(t, resp.TTL)
}

func requireLost(t testing.TB, store kv.Store, name string, rec kv.Record) {
	t.Helper()
	got, err := store.Refresh(within(t, patience), name, rec)
	require.ErrorIs(t, err, kv.ErrStale, "the refresh returned %+v", got)
}

func TestALeaseThatIsKeptAliveIsNoProofOfARecord(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store := open(t, nil, testenv.Etcd(t))
	for what, harm := range map[string]func(name string, rec kv.Record){
		"deleted":     func(name string, _ kv.Record) { remove(t, client, name) },
		"overwritten": func(name string, _ kv.Record) { put(t, client, name, "somebody") },
		"overwritten with the same lease": func(name string, rec kv.Record) {
			put(t, client, name, "somebody", clientv3.WithLease(leaseOf(t, rec)))
		},
	} {
		name, rec := held(t, store)
		harm(name, rec)
		requireAlive(t, client, rec)
		for range 2 {
			requireLost(t, store, name, rec)
		}
		requireAlive(t, client, rec)
		t.Logf("a record that was %s is lost while its lease is alive", what)
	}
}

// Whoever copies a record's text back to its key, from a backup say, detaches
// the lease. What the owner then keeps alive is not the record.
func TestARecordWhoseLeaseWasExchangedIsLost(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store := open(t, nil, testenv.Etcd(t))
	other, err := client.Grant(within(t, patience), 600)
	require.NoError(t, err)
	for _, opts := range [][]clientv3.OpOption{nil, {clientv3.WithLease(other.ID)}} {
		name, rec := held(t, store)
		rec, err := store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
		require.NoError(t, err) // the text has the token now, so it is equal to the copy's

		put(t, client, name, kv.Encode(kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: rec.TTL, Token: rec.Token}), opts...)
		now, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.True(t, now.Owns(rec))
		require.Equal(t, opts == nil, now.Permanent)

		requireAlive(t, client, rec)
		requireLost(t, store, name, rec)
		require.NoError(t, store.Delete(within(t, patience), name, rec), "the owner may tidy up")
		_, err = store.Get(within(t, patience), name)
		require.ErrorIs(t, err, kv.ErrVacant)
	}
	_, err = client.KeepAliveOnce(within(t, patience), other.ID)
	require.NoError(t, err, "another's lease was revoked")
}

func TestARecordWhoseLeaseWasRevokedIsLost(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store := open(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	w := watching(t, store, name)
	require.Equal(t, rec, w.next().rec)
	_, err := client.Revoke(within(t, patience), leaseOf(t, rec))
	require.NoError(t, err)
	require.ErrorIs(t, w.next().err, kv.ErrVacant)
	requireLost(t, store, name, rec)
	require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale)
}

func TestARecordWithoutALeaseCannotBeRefreshed(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store := open(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	put(t, client, name, kv.Encode(kv.Record{Signature: rec.Signature, TTL: rec.TTL}))
	now, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.Empty(t, now.Lease)
	requireLost(t, store, name, now)

	now.Lease = "not a lease"
	_, err = store.Refresh(within(t, patience), name, now)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.NoError(t, store.Delete(within(t, patience), name, kv.Record{Signature: now.Signature, Token: now.Token}))
}

func TestAnHeirsLeaseMustLastForTheTTLAskedFor(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	lead, leader := held(t, store)
	_, heir := held(t, store)
	heir.TTL += time.Second
	_, err := store.Swap(within(t, patience), lead, leader, heir)
	require.ErrorIs(t, err, kv.ErrInvalid)
	now, err := store.Get(within(t, patience), lead)
	require.NoError(t, err)
	require.Equal(t, leader, now)
}
