package etcdkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// spoiledObserved returns an observed store whose replies can be spoiled.
func spoiledObserved(t testing.TB) (*etcdkv.Observed, *spoiler) {
	t.Helper()
	s := &spoiler{method: "none"}
	return observedBy(dialWith(t, nil, clientv3.Config{
		Endpoints:   []string{testenv.Etcd(t)},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.intercept)},
	})), s
}

func TestAnObservedWriteWhoseReplyIsLostLeavesTheOutcomeOpen(t *testing.T) {
	store, s := spoiledObserved(t)
	rec := signed("v")
	name := rec.Signature
	lost := func(what string, write func() (kv.Record, error)) kv.Record {
		t.Helper()
		s.lose("/Txn", 0, codes.Unavailable)
		s.calls.Store(0)
		_, err := write()
		requireOpen(t, what, err)
		require.EqualValues(t, 1, s.calls.Load(), "the client sent the write again")
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err, what)
		again, err := store.Refresh(within(t, patience), name, got)
		require.NoError(t, err, "whoever finds its signature can go on with the record")
		require.Equal(t, got, again)
		return got
	}
	got := lost("create", func() (kv.Record, error) { return store.Create(within(t, patience), name, rec) })
	require.Equal(t, rec.Signature, got.Signature)
	token := got.Token
	got = lost("refresh", func() (kv.Record, error) { return store.Refresh(within(t, patience), name, got) })
	got = lost("publish", func() (kv.Record, error) {
		return store.Swap(within(t, patience), name, got, kv.Record{Signature: got.Signature, Value: "published"})
	})
	require.Equal(t, "published", got.Value)
	require.Equal(t, token, got.Token)
	got = lost("take over", func() (kv.Record, error) { return store.Swap(within(t, patience), name, got, signed("next")) })
	require.Greater(t, got.Token, token)

	s.lose("/Txn", 0, codes.Unavailable)
	requireOpen(t, "delete", store.Delete(within(t, patience), name, got))
	_, err := store.Get(within(t, patience), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// The client takes such an answer for a failure to send, and sends the Txn again. The
// second one cannot tell the first one's record from an older one of the signature,
// and does not call it its own.
func TestAnObservedWriteThatTheClientSendsTwiceIsCarriedOutOnce(t *testing.T) {
	store, s := spoiledObserved(t)
	rec := signed("v")
	name := rec.Signature
	s.lose("/Txn", 0, codes.Canceled)
	_, err := store.Create(within(t, patience), name, rec)
	require.ErrorIs(t, err, kv.ErrHeld)
	require.EqualValues(t, 2, s.calls.Load())
	rec, err = store.Get(within(t, patience), name)
	require.NoError(t, err)

	s.left.Store(1)
	got, err := store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)

	s.left.Store(1)
	_, err = store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
	require.ErrorIs(t, err, kv.ErrStale)
	got, err = store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err, "the record is the owner's still")
	require.Equal(t, "published", got.Value)
	require.Equal(t, rec.Token, got.Token)
}

func TestObservedCallsReturnWhenTheirContextEndsThoughTheServerHangs(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := observed(t, nil, server.Addr())
	name, rec := held(t, store)
	fresh := observed(t, nil, server.Addr()) // has no connection yet
	server.Pause()
	for _, s := range []kv.Store{store, fresh} {
		start := time.Now()
		errs := calls(s, name, rec, 300*time.Millisecond)
		require.Less(t, time.Since(start), patience)
		for op, err := range errs {
			requireOpen(t, op, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
		}
	}
	server.Continue()
	// What was asked for is carried out now, or not; either way the store knows.
	if _, err := store.Get(within(t, patience), name); err != nil {
		require.ErrorIs(t, err, kv.ErrVacant)
	}
}

// A server that stands still for longer than the TTL ends nothing by itself. Nobody
// judges a record whose owner could not refresh it by what the server has to say
// about time: each observer waits for the TTL from when it last saw a revision.
func TestAnObservedRecordOutlivesAServerThatStoodStill(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := observed(t, nil, server.Addr())
	rec := signed("v")
	rec.TTL = 2 * time.Second
	rec, err := store.Create(within(t, patience), "safe", rec)
	require.NoError(t, err)
	server.Pause()
	time.Sleep(rec.TTL + rec.TTL/4)
	server.Continue()
	late := observed(t, nil, server.Addr()) // sees it for the first time
	_, err = late.Create(within(t, patience), "safe", signed("late"))
	require.ErrorIs(t, err, kv.ErrHeld)
	server.Restart()
	got, err := late.Get(within(t, patience), "safe")
	if err != nil { // the restart took longer than the TTL
		require.ErrorIs(t, err, kv.ErrVacant)
	} else {
		require.Equal(t, rec, got)
	}
	_, err = observed(t, nil, server.Addr()).Create(within(t, patience), "safe", signed("later"))
	require.ErrorIs(t, err, kv.ErrHeld)
}

func TestAnObservedWatchSurvivesCompactionsAndRestarts(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	proxy := testenv.NewProxy(t, server.Addr())
	client, store := dial(t, nil, server.Addr()), observed(t, nil, server.Addr())
	name, rec := held(t, store)
	w := watching(t, observed(t, nil, proxy.Addr()), name)
	w.sees(rec)
	for range 2 {
		w = w.through(func() {
			proxy.Cut()
			for range 3 {
				_, err := store.Refresh(within(t, patience), name, rec)
				require.NoError(t, err)
			}
			rec = publish(t, store, name, rec, rec.Value+"+")
			_, err := client.Compact(within(t, patience), pair(t, client, name).Header.Revision)
			require.NoError(t, err)
			proxy.Heal()
		})
		w.sees(rec)
		w = w.through(server.Restart)
		rec = publish(t, store, name, rec, rec.Value+"+")
		w.sees(rec)
	}
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	require.True(t, w.next().vacant())
}

// In a store that was put back to nothing, the safe is vacant, and the revisions
// begin anew.
func TestAnObservedWatchFindsAStoreThatWasPutBack(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := etcdkv.NewObserved(dial(t, nil, server.Addr()), &etcdkv.ObservedOptions{Prefix: prefix, Backstop: time.Second})
	name, rec := held(t, store)
	for range 20 {
		rec = publish(t, store, name, rec, rec.Value+"+")
	}
	w := watching(t, store, name)
	w.sees(rec)
	w = w.through(func() {
		server.Kill()
		server.Wipe()
		server.Restart()
	})
	require.True(t, w.next().vacant())
	rec, err := store.Create(within(t, patience), name, signed("in the new store"))
	require.NoError(t, err)
	w.sees(rec)
}
