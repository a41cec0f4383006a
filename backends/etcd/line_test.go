package etcdkv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// The order of the keys' names is the other way round.
func TestTheSafeHoldsTheKeyThatWasCreatedFirst(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		w := watching(t, store, name)
		require.True(t, w.next().vacant())
		put(t, client, name+"/c", "first")
		put(t, client, name+"/b", "second")
		put(t, client, name+"/a", "third")
		put(t, client, name+"/c", "first again")
		for _, value := range []string{"first again", "second", "third"} {
			got, err := store.Get(within(t, patience), name)
			require.NoError(t, err)
			require.Equal(t, value, got.Value)
			w.sees(got)
			require.Equal(t, got, watching(t, store, name).next().rec)
			remove(t, client, places(t, client, options, name)[0])
		}
		require.True(t, w.next().vacant())
	})
}

// Somebody has put a key there with etcdctl. It is in everybody's way, and is
// left alone.
func TestAKeyWithoutALeaseIsAPermanentForeignRecord(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		put(t, client, name+"/stuck", "by hand")
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err, "it came later")
		require.Equal(t, rec, got)
		require.NoError(t, store.Delete(within(t, patience), name, rec))

		got, err = store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.True(t, got.Foreign)
		require.True(t, got.Permanent)
		require.Greater(t, got.Token, rec.Token)
		require.Equal(t, "by hand", got.Value)
		_, err = store.Create(within(t, patience), name, signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Equal(t, []string{name + "/stuck"}, places(t, client, options, name))
		remove(t, client, name+"/stuck")
		_, err = store.Create(within(t, patience), name, signed("v"))
		require.NoError(t, err)
	})
}

// Somebody has copied our text to a key of another lease, or of none: an owner
// that looks for its lease's key would not find it.
func TestATextUnderAnotherLeasesNameIsForeign(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	store := openWith(t, nil, queues()[0], testenv.Etcd(t))
	other, err := client.Grant(within(t, patience), 600)
	require.NoError(t, err)
	for what, opts := range map[string][]clientv3.OpOption{"no lease": nil, "another": {clientv3.WithLease(other.ID)}} {
		name, rec := held(t, store)
		key := name + "/" + rec.Lease
		resp, err := client.Get(within(t, patience), prefix+key)
		require.NoError(t, err)
		put(t, client, key, string(resp.Kvs[0].Value), opts...)
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.True(t, got.Foreign, what)
		require.Equal(t, opts == nil, got.Permanent)
		requireLost(t, store, name, rec)
		require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale)
		_, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature})
		require.ErrorIs(t, err, kv.ErrStale)
		require.Equal(t, []string{key}, places(t, client, queues()[0], name))
	}
}

// A key that is deleted and created anew goes to the end of the line.
func TestANewValueKeepsKeyAndLease(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		for i := range 3 {
			rec = publish(t, store, name, rec, fmt.Sprint(i))
			resp, err := client.Get(within(t, patience), prefix+name+"/", clientv3.WithPrefix())
			require.NoError(t, err)
			require.Len(t, resp.Kvs, 1)
			require.Equal(t, prefix+name+"/"+rec.Lease, string(resp.Kvs[0].Key))
			require.EqualValues(t, rec.Token, resp.Kvs[0].CreateRevision)
			require.EqualValues(t, rec.Revision, resp.Kvs[0].ModRevision)
			require.EqualValues(t, leaseOf(t, rec), resp.Kvs[0].Lease)
		}
	})
}

func TestNobodyIsPassedByInAHandOver(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		second, heir := held(t, store)
		old := mutex(t, client, name)
		locked := locking(t, client, options, name, old)
		line := places(t, client, options, name)
		for what, next := range map[string]kv.Record{"taken over": signed("next"), "handed over": heir} {
			_, err := store.Swap(within(t, patience), name, rec, next)
			require.ErrorIs(t, err, kv.ErrStale, what)
			require.ErrorContains(t, err, "others are in line")
			got, err := store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, got)
			require.Equal(t, line, places(t, client, options, name))
		}
		got, err := store.Refresh(within(t, patience), second, heir)
		require.NoError(t, err)
		require.Equal(t, heir, got)
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		require.NoError(t, <-locked)
	})
}

// An old client comes to the line after the look and before the write.
func TestNobodyWhoComesMeanwhileIsPassedByInAHandOver(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client := dial(t, nil, testenv.Etcd(t))
		for _, step := range []string{"/LeaseGrant", "/LeaseTimeToLive"} {
			store, meddle := meddledWith(t, options, step)
			name, rec := held(t, store)
			_, next := held(t, store)
			if step == "/LeaseGrant" {
				next = signed("next")
			}
			old := mutex(t, client, name)
			var locked <-chan error
			*meddle = func() { locked = locking(t, client, options, name, old) }
			_, err := store.Swap(within(t, patience), name, rec, next)
			require.ErrorIs(t, err, kv.ErrStale, step)
			require.NotNil(t, locked, step)
			got, err := store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, got)
			require.Empty(t, locked)
			require.NoError(t, store.Delete(within(t, patience), name, rec))
			require.NoError(t, <-locked)
		}
	})
}

func TestNobodyWhoComesMeanwhileIsPassedByInACreate(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client := dial(t, nil, testenv.Etcd(t))
		store, meddle := meddledWith(t, options, "/LeaseGrant")
		name := signed("").Signature
		old := mutex(t, client, name)
		*meddle = func() { require.NoError(t, old.Lock(within(t, patience))) }
		_, err := store.Create(within(t, patience), name, signed("late"))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Len(t, places(t, client, options, name), 1)
	})
}

// The key of the heir's lease is in place in the moment in which the old one goes.
func TestAHandOverReplacesTheKeyAndBringsALargerToken(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		second, heir := held(t, store)
		w := watching(t, store, name)
		require.Equal(t, rec, w.next().rec)
		next, err := store.Swap(within(t, patience), name, rec, heir)
		require.NoError(t, err)
		require.Equal(t, []string{name + "/" + heir.Lease}, places(t, client, options, name))
		require.Greater(t, next.Token, rec.Token)
		require.Equal(t, next.Revision, next.Token)
		require.Equal(t, next, w.next().rec, "the safe was never vacant")
		requireLost(t, store, name, rec)
		require.NoError(t, store.Delete(within(t, patience), second, heir))
		requireAlive(t, client, next)
		got, err := store.Refresh(within(t, patience), name, next)
		require.NoError(t, err)
		require.Equal(t, next, got)
	})
}

// The request comes late, when the line has changed.
func TestADeleteHarmsNobodyWhoHasCome(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client := dial(t, nil, testenv.Etcd(t))
		store, meddle := meddledWith(t, options, "/Txn")
		name, rec := held(t, store)
		key := name + "/" + rec.Lease
		*meddle = func() { put(t, client, key, "somebody") }
		require.ErrorIs(t, store.Delete(within(t, patience), name, rec), kv.ErrStale)
		require.Equal(t, []string{key}, places(t, client, options, name))
	})
}
