package etcdkv_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// leasesBelow returns the leases of all keys that begin with a name.
func leasesBelow(t testing.TB, client *clientv3.Client, name string) (all []clientv3.LeaseID) {
	t.Helper()
	resp, err := client.Get(within(t, patience), prefix+name, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, at := range resp.Kvs {
		all = append(all, clientv3.LeaseID(at.Lease))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// refreshSingly returns how long this machine takes to refresh so many records at once, each by
// itself.
func refreshSingly(t testing.TB, store kv.Store, terms []*reign) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for _, one := range terms {
		all.Go(func() {
			name, rec := one.term.NamedRecord()
			if _, err := store.Refresh(within(t, patience), name, rec); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// Each term learns of it by a refresh that its watch has asked for. On a slow machine these take
// longer than a second, and then the terms may too.
//
// Terms of the same process that have another lease, here because of another TTL, do not learn
// of it.
func TestALeaseThatIsRevokedUnderFiveHundredTermsEndsThemWithinASecond(t *testing.T) {
	testenv.Long(t)
	const (
		ttl      = 15 * time.Second // even a slow machine loses no create
		comeback = 5 * time.Second  // the candidates' rest, and as many claims
	)
	client, store := dial(t, nil, testenv.Etcd(t)), open(t, nil, testenv.Etcd(t))
	r, others := reigning(t, store, ttl, 500), reigning(t, store, 2*ttl, 20)
	lost, _ := r.await(t, patience)
	kept, _ := others.await(t, patience)
	slow := refreshSingly(t, store, lost)
	leases := leasesBelow(t, client, r.name)
	require.Len(t, leases, 1)

	revoked := time.Now()
	_, err := client.Revoke(within(t, patience), leases[0])
	require.NoError(t, err)
	over := r.awaitEnds(t, lost, patience).Sub(revoked)
	for _, one := range lost {
		require.ErrorIs(t, one.cause, election.ErrLost)
		require.ErrorContains(t, one.cause, "the record is gone")
	}
	again, at := r.await(t, patience)
	back := at.Sub(revoked)
	slow = max(slow, refreshSingly(t, store, again))
	require.Less(t, over, max(2*time.Second, 15*slow)) // the next refresh is later than that
	require.Less(t, back, comeback+5*slow)
	t.Logf("all were over after %v, and all led again after %v; so many refreshes took %v", over, back, slow)

	r.awaitRefresh(t, again, ttl+patience, at.Add(ttl*9/10)) // what was late has come
	now, _ := r.await(t, patience)
	require.True(t, slices.Equal(again, now))
	now, _ = others.await(t, patience)
	require.True(t, slices.Equal(kept, now))
	r.requireInOrder(t)
}
