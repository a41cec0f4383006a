package etcdkv_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// leases is how many leases the server has.
func leases(t testing.TB, client *clientv3.Client) int {
	t.Helper()
	resp, err := client.Leases(within(t, patience))
	require.NoError(t, err)
	return len(resp.Leases)
}

func TestRecordsThatComeAndGoLeaveNoLeases(t *testing.T) {
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	for range 100 {
		name, rec := held(t, store)
		_, err := store.Create(within(t, patience), name, signed("refused"))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Equal(t, 1, leases(t, client))
		rec, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
		require.NoError(t, err)
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		require.Zero(t, leases(t, client))
	}
}

// All see a vacant safe, so all ask for a lease.
func TestCandidatesThatAreRefusedGiveTheirLeasesBack(t *testing.T) {
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	for _, name := range []string{"a", "b", "c"} {
		won := rush(t, kv.ErrHeld, func() (kv.Record, error) {
			return store.Create(within(t, patience), name, signed("created"))
		})
		require.Equal(t, 1, leases(t, client), "after the creates")
		taken := rush(t, kv.ErrStale, func() (kv.Record, error) {
			return store.Swap(within(t, patience), name, won, signed("taken over"))
		})
		require.Equal(t, 2, leases(t, client), "the former owner's fades by itself")
		_, err := client.Revoke(within(t, patience), leaseOf(t, won))
		require.NoError(t, err)
		require.NoError(t, store.Delete(within(t, patience), name, taken))
		require.Zero(t, leases(t, client))
	}
}

// rush calls f 30 times at once and returns what the only one returned that was
// not refused.
func rush(t testing.TB, refused error, f func() (kv.Record, error)) kv.Record {
	t.Helper()
	recs, errs := make([]kv.Record, 30), make([]error, 30)
	var crowd sync.WaitGroup
	for i := range recs {
		crowd.Go(func() { recs[i], errs[i] = f() })
	}
	crowd.Wait()
	var won []kv.Record
	for i, err := range errs {
		if err == nil {
			won = append(won, recs[i])
			continue
		}
		require.ErrorIs(t, err, refused)
	}
	require.Len(t, won, 1)
	return won[0]
}

func TestALeaseThatBacksTwoRecordsIsFreedWithTheSecond(t *testing.T) {
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	lead, leader := held(t, store)
	second, heir := held(t, store)
	rec, err := store.Swap(within(t, patience), lead, leader, heir)
	require.NoError(t, err)
	require.NoError(t, store.Delete(within(t, patience), second, heir))
	require.Equal(t, 2, leases(t, client))
	require.NoError(t, store.Delete(within(t, patience), lead, rec))
	require.Equal(t, 1, leases(t, client), "the former leader's fades by itself")
}

// The owner's other goroutine publishes meanwhile.
func TestADeleteOutrunsNewValues(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	for range 20 {
		name, created := held(t, store)
		var owner sync.WaitGroup
		owner.Go(func() {
			for rec, err := created, error(nil); err == nil; {
				rec, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: time.Now().String()})
			}
		})
		require.NoError(t, store.Delete(within(t, patience), name, created))
		owner.Wait()
		_, err := store.Get(within(t, patience), name)
		require.ErrorIs(t, err, kv.ErrVacant)
	}
}

// The server keeps leases through a restart, and starts each anew: no record is
// shorter for it, and none lasts for ever.
func TestARecordOutlivesItsServersRestartAndThenFades(t *testing.T) {
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	rec := signed("v")
	rec.TTL = 3 * time.Second
	start := time.Now()
	rec, err := store.Create(within(t, patience), "restart", rec)
	require.NoError(t, err)
	w := watching(t, store, "restart")
	w.sees(rec)
	server.Restart()
	require.True(t, w.next().vacant())
	require.GreaterOrEqual(t, time.Since(start), rec.TTL)
}
