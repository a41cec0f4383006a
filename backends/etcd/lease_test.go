package etcdkv_test

import (
	"slices"
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

// briefTTL is longer than it takes a busy machine to do a few things with a record.
const briefTTL = 10 * time.Second

// briefly returns a record to be put somewhere for a brief time.
func briefly(value string) kv.Record {
	rec := signed(value)
	rec.TTL = briefTTL
	return rec
}

// requireNoLeases waits until the server has none, which is when all have faded.
func requireNoLeases(t testing.TB, client *clientv3.Client) {
	t.Helper()
	require.Eventually(t, func() bool { return leases(t, client) == 0 }, briefTTL+patience, 100*time.Millisecond)
}

// The one that is granted beside a delete is that of the next record.
func TestRecordsThatComeAndGoLeaveLeasesThatFade(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	const cycles = 20
	began := time.Now()
	seen := make(map[string]bool)
	for range cycles {
		rec, err := store.Create(within(t, patience), "safe", briefly("created"))
		require.NoError(t, err)
		require.False(t, seen[rec.Lease], "each has a lease of its own")
		seen[rec.Lease] = true
		_, err = store.Create(within(t, patience), "safe", briefly("refused"))
		require.ErrorIs(t, err, kv.ErrHeld)
		rec, err = store.Swap(within(t, patience), "safe", rec, kv.Record{Signature: rec.Signature, Value: "published"})
		require.NoError(t, err)
		require.NoError(t, store.Delete(within(t, patience), "safe", rec))
	}
	if time.Since(began) < briefTTL {
		// One for each record, and one that was ready too late for its own: then that had another granted.
		require.Less(t, leases(t, client), 2*cycles)
	}
	requireNoLeases(t, client)
}

// Whoever finds the lease that was ready gone has another one granted.
func TestALeaseThatWasReadyAndIsGoneIsNotMissed(t *testing.T) {
	server := testenv.StartEtcd(t) // whose leases are revoked
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	// again releases a safe and takes it again, and reports whether a lease was ready for that.
	again := func(meanwhile func([]clientv3.LeaseStatus)) bool {
		name, rec := held(t, store)
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		all, err := client.Leases(within(t, patience))
		require.NoError(t, err)
		meanwhile(all.Leases)
		rec, err = store.Create(within(t, patience), name, signed("again"))
		require.NoError(t, err)
		requireAlive(t, client, rec)
		return slices.ContainsFunc(all.Leases, func(l clientv3.LeaseStatus) bool { return l.ID == leaseOf(t, rec) })
	}
	require.Eventually(t, func() bool { // a grant that takes longer than the delete is not waited for
		return again(func([]clientv3.LeaseStatus) {})
	}, patience, time.Millisecond)
	require.False(t, again(func(all []clientv3.LeaseStatus) {
		for _, lease := range all {
			_, err := client.Revoke(within(t, patience), lease.ID)
			require.NoError(t, err)
		}
	}))
}

// Whoever finds the record, and not the answer, trusts it from the start of the call.
func TestNothingIsCreatedWithALeaseThatIsNotKnownToLive(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store, d := deniedWith(t, options)
		client := dial(t, nil, testenv.Etcd(t))
		require.Eventually(t, func() bool { // a grant that takes longer than the delete is not waited for
			name, rec := held(t, store)
			require.NoError(t, store.Delete(within(t, patience), name, rec))
			before, err := client.Leases(within(t, patience))
			require.NoError(t, err)
			d.renewals.Store(1)
			again, err := store.Create(within(t, patience), name, signed("again"))
			require.NoError(t, err)
			require.NotContains(t, before.Leases, clientv3.LeaseStatus{ID: leaseOf(t, again)})
			return d.renewals.Swap(0) <= 0
		}, patience, time.Millisecond, "the lease that was ready was to be kept alive")
	})
}

// All see a vacant safe, so all ask for a lease.
func TestCandidatesThatAreRefusedLeaveLeasesThatFade(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	won := rush(t, kv.ErrHeld, func() (kv.Record, error) {
		return store.Create(within(t, patience), "safe", briefly("created"))
	})
	rush(t, kv.ErrStale, func() (kv.Record, error) {
		return store.Swap(within(t, patience), "safe", won, briefly("taken over"))
	})
	requireNoLeases(t, client)
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

func TestALeaseThatBacksTwoRecordsOutlivesTheFirst(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	lead, leader := held(t, store)
	second, heir := held(t, store)
	rec, err := store.Swap(within(t, patience), lead, leader, heir)
	require.NoError(t, err)
	require.NoError(t, store.Delete(within(t, patience), second, heir))
	got, err := store.Refresh(within(t, patience), lead, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
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
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	rec := signed("v")
	rec.TTL = briefTTL
	start := time.Now()
	rec, err := store.Create(within(t, patience), "restart", rec)
	require.NoError(t, err)
	w := watching(t, store, "restart")
	w.sees(rec)
	w = w.through(server.Restart)
	for o := w.next(); !o.vacant(); o = w.next() {
		require.Equal(t, sighting{rec: rec}, o)
	}
	require.GreaterOrEqual(t, time.Since(start), rec.TTL)
}
