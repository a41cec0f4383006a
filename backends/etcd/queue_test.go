package etcdkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// joined puts a new place at the end of a line.
func joined(t testing.TB, store kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	place, err := store.(kv.Queue).Join(within(t, patience), name, rec)
	require.NoError(t, err)
	return place
}

func stays(t testing.TB, store kv.Store, name string, place kv.Record) (leads bool) {
	t.Helper()
	got, leads, err := store.(kv.Queue).Stay(within(t, patience), name, place)
	require.NoError(t, err)
	require.Equal(t, place, got)
	return leads
}

func TestOldAndNewAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		first, third := mutex(t, client, name), mutex(t, client, name)
		require.NoError(t, first.Lock(within(t, patience)))
		second := joined(t, store, name, signed("the second"))
		locked := locking(t, client, options, name, third)
		fourth := joined(t, store, name, signed("the fourth"))
		require.Greater(t, fourth.Token, second.Token)
		require.Greater(t, second.Token, uint64(first.Header().Revision))

		w := watching(t, store, name)
		require.EqualValues(t, first.Header().Revision, w.next().rec.Token)
		require.False(t, stays(t, store, name, second))
		require.False(t, stays(t, store, name, fourth))

		require.NoError(t, first.Unlock(within(t, patience)))
		require.Equal(t, second, w.next().rec, "the next has it at that instant")
		require.True(t, stays(t, store, name, second))
		require.False(t, stays(t, store, name, fourth))
		require.Empty(t, locked)
		got, err := store.Refresh(within(t, patience), name, second)
		require.NoError(t, err)
		require.Equal(t, second, got)

		require.NoError(t, store.Delete(within(t, patience), name, second))
		require.NoError(t, <-locked)
		o := w.next()
		require.True(t, o.rec.Foreign)
		require.Greater(t, o.rec.Token, second.Token)
		require.Less(t, o.rec.Token, fourth.Token)
		require.False(t, stays(t, store, name, fourth))
		require.NoError(t, third.Unlock(within(t, patience)))
		require.Equal(t, fourth, w.next().rec)
		require.True(t, stays(t, store, name, fourth))
		require.Len(t, places(t, client, options, name), 1)
	})
}

func TestAPlaceThatIsNotFirstOwnsNothing(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		place := joined(t, store, name, signed("waits"))
		requireLost(t, store, name, place)
		for _, next := range []kv.Record{{Signature: place.Signature, Value: "published"}, signed("taken over")} {
			_, err := store.Swap(within(t, patience), name, place, next)
			require.ErrorIs(t, err, kv.ErrStale)
		}
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.False(t, stays(t, store, name, place))
		require.NoError(t, store.Delete(within(t, patience), name, place), "it may leave")
		_, _, err = store.(kv.Queue).Stay(within(t, patience), name, place)
		require.ErrorIs(t, err, kv.ErrStale)
		got, err = store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// A lease outlives its key, and another may have come to the key.
func TestAPlaceIsLostWithItsKeyThoughItsLeaseIsAlive(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		for what, harm := range map[string]func(key string, lease clientv3.LeaseID){
			"removed":     func(key string, _ clientv3.LeaseID) { remove(t, client, key) },
			"overwritten": func(key string, _ clientv3.LeaseID) { put(t, client, key, "somebody") },
			"taken by its own lease": func(key string, id clientv3.LeaseID) {
				put(t, client, key, "somebody", clientv3.WithLease(id))
			},
			"created anew": func(key string, id clientv3.LeaseID) {
				resp, err := client.Get(within(t, patience), prefix+key)
				require.NoError(t, err)
				remove(t, client, key)
				put(t, client, key, string(resp.Kvs[0].Value), clientv3.WithLease(id))
			},
		} {
			name, _ := held(t, store)
			place := joined(t, store, name, signed("waits"))
			harm(name+"/"+place.Lease, leaseOf(t, place))
			requireAlive(t, client, place)
			_, leads, err := store.(kv.Queue).Stay(within(t, patience), name, place)
			require.ErrorIs(t, err, kv.ErrStale, what)
			require.False(t, leads)
			require.ErrorIs(t, store.Delete(within(t, patience), name, place), kv.ErrStale, what)
		}
	})
}

func TestAPlaceWhoseOwnerIsGoneLeavesTheLine(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		t.Parallel() // mostly it waits
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		old := mutex(t, client, name)
		locked := locking(t, client, options, name, old)
		gone := signed("gone")
		gone.TTL = 2 * time.Second
		start := time.Now()
		gone = joined(t, store, name, gone)
		waiting := joined(t, store, name, signed("waits"))
		if keys := places(t, client, options, name); time.Since(start) < gone.TTL {
			require.Len(t, keys, 4)
		}
		keys := awaitPlaces(t, client, options, name, 3)
		require.NotContains(t, keys, name+"/"+gone.Lease)
		require.GreaterOrEqual(t, time.Since(start), gone.TTL)
		_, _, err := store.(kv.Queue).Stay(within(t, patience), name, gone)
		require.ErrorIs(t, err, kv.ErrStale)
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		require.NoError(t, <-locked)
		require.False(t, stays(t, store, name, waiting))
		require.NoError(t, old.Unlock(within(t, patience)))
		require.True(t, stays(t, store, name, waiting))
	})
}

// Who stays is served, however long it takes. It tries again where the machine was
// too busy to stay in time.
func TestAPlaceLastsAsLongAsItsOwnerStays(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		t.Parallel() // mostly it waits
		store := openWith(t, nil, options, testenv.Etcd(t))
		for range 5 {
			if lastsWhileItsOwnerStays(t, store) {
				return
			}
		}
		require.FailNow(t, "this machine is too busy to stay in time")
	})
}

func lastsWhileItsOwnerStays(t *testing.T, store anyStore) bool {
	name, _ := held(t, store)
	place := signed("waits")
	place.TTL = 4 * time.Second
	begin := time.Now()
	last := begin
	place = joined(t, store, name, place)
	for time.Since(begin) < 3*place.TTL/2 {
		time.Sleep(place.TTL / 8)
		sent := time.Now()
		got, leads, err := store.(kv.Queue).Stay(within(t, patience), name, place)
		if err != nil && time.Since(last) >= place.TTL {
			return false
		}
		require.NoError(t, err)
		require.Equal(t, place, got)
		require.False(t, leads)
		last = sent
	}
	return true
}

func TestAJoinWhoseReplyIsLostFindsItsPlaceAgain(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		client := dial(t, nil, testenv.Etcd(t))
		store, s := spoiledWith(t, options)
		name, _ := held(t, store)
		rec := signed("waits")
		s.lose("/Txn", joinReads(options), codes.Unavailable)
		_, err := store.(kv.Queue).Join(within(t, patience), name, rec)
		requireOpen(t, "join", err)
		late := joined(t, store, name, signed("came later"))
		place := joined(t, store, name, rec)
		require.Less(t, place.Token, late.Token, "it has kept its place")
		require.Equal(t, []string{name + "/" + place.Lease, name + "/" + late.Lease}, places(t, client, options, name)[1:])
		require.False(t, stays(t, store, name, place))
		require.Equal(t, place, joined(t, store, name, rec))

		// An answer after which the client sends the Txn again by itself.
		s.lose("/Txn", joinReads(options), codes.Canceled)
		twice := joined(t, store, name, signed("twice"))
		require.Len(t, places(t, client, options, name), 4)
		require.False(t, stays(t, store, name, twice))
	})
}

// joinReads is how many Txns a Join sends before the one that writes.
func joinReads(options layout) int32 {
	if options.Plain {
		return 1
	}
	return 0
}

func TestAJoinThatWasCutShortIsFoundOrFades(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, _ := held(t, store)
		for i := range 20 {
			rec := signed("cut short")
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*200*time.Microsecond)
			_, err := store.(kv.Queue).Join(ctx, name, rec)
			cancel()
			if err != nil { // the context's, or the server's own word for it
				requireOpen(t, "join", err)
			}
			place := joined(t, store, name, rec)
			require.NoError(t, store.Delete(within(t, patience), name, place))
		}
		require.NotEmpty(t, places(t, client, options, name))
	})
}

func TestPlacesThatComeAndGoLeaveNoKeys(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		client, store := dial(t, nil, server.Addr()), openWith(t, nil, options, server.Addr())
		for range 20 {
			name, rec := held(t, store)
			place := joined(t, store, name, signed("waits"))
			_, err := store.Create(within(t, patience), name, signed("refused"))
			require.ErrorIs(t, err, kv.ErrHeld)
			_, err = store.Swap(within(t, patience), name, rec, signed("refused"))
			require.ErrorIs(t, err, kv.ErrStale)
			require.NoError(t, store.Delete(within(t, patience), name, place))
			require.NoError(t, store.Delete(within(t, patience), name, rec))
		}
		resp, err := client.Get(within(t, patience), "", clientv3.WithPrefix())
		require.NoError(t, err)
		require.Empty(t, resp.Kvs, "keys that are left over")
	})
}
