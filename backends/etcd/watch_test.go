package etcdkv_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// publish changes the value of a record.
func publish(t testing.TB, store kv.Store, name string, rec kv.Record, value string) kv.Record {
	t.Helper()
	rec, err := store.Swap(within(t, patience), name, rec, kv.Record{Signature: rec.Signature, Value: value})
	require.NoError(t, err)
	return rec
}

// The watch is there before the state is read, and is told of changes that the read shows
// already.
func TestAWatchDoesNotGoBackToBeforeWhatItHasSeen(t *testing.T) {
	writer := openWith(t, nil, layout{}, testenv.Etcd(t))
	store, meddle := meddled(t, "/Range")
	name, rec := held(t, writer)
	*meddle = func() {
		for i := range 100 { // of which a reader would see some
			rec = publish(t, writer, name, rec, strconv.Itoa(i))
		}
	}
	w := watching(t, store, name)
	require.Equal(t, rec, w.next().rec, "what the read shows")
	rec = publish(t, writer, name, rec, "last")
	require.Equal(t, rec, w.next().rec, "and nothing older")
}

// While the watch is cut off, the revision goes from which it would go on.
func TestAWatchSurvivesACompaction(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	proxy := testenv.NewProxy(t, server.Addr())
	client, store := dial(t, nil, server.Addr()), open(t, nil, server.Addr())
	name, rec := held(t, store)
	w := watching(t, open(t, nil, proxy.Addr()), name)
	w.sees(rec)
	for range 3 {
		w = w.through(func() {
			proxy.Cut()
			for _, value := range []string{"one", "two", "three"} {
				rec = publish(t, store, name, rec, value)
			}
			resp, err := client.Get(within(t, patience), prefix+name)
			require.NoError(t, err)
			_, err = client.Compact(within(t, patience), resp.Header.Revision)
			require.NoError(t, err)
			proxy.Heal()
		})
		w.sees(rec)
	}
	rec = publish(t, store, name, rec, "the last")
	w.sees(rec)
}

func TestAWatchSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	name, rec := held(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	for range 2 {
		w = w.through(server.Restart)
		rec = publish(t, store, name, rec, rec.Value+"+")
		w.sees(rec)
	}
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	require.True(t, w.next().vacant())
}

// The connection stays open, and nothing comes. The reads that back the watch up
// notice it.
func TestAWatchWhoseConnectionIsDeadSaysSo(t *testing.T) {
	t.Parallel() // it mostly waits
	proxy := testenv.NewProxy(t, testenv.Etcd(t))
	client := dial(t, nil, proxy.Addr())
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix, Backstop: time.Second})
	name, rec := held(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	proxy.BlackHole()
	start := time.Now()
	o := w.next()
	require.ErrorContains(t, o.err, "no answer")
	require.NotErrorIs(t, o.err, context.DeadlineExceeded, "the reader's context has no deadline")
	require.Less(t, time.Since(start), patience)
}

// A backstop finds what the stream has not told, and does not make the watch
// tell it twice.
func TestAWatchWithABackstopTellsEachStateOnce(t *testing.T) {
	store := etcdkv.New(dial(t, nil, testenv.Etcd(t)), &etcdkv.Options{Prefix: prefix, Backstop: 20 * time.Millisecond})
	name, rec := held(t, store)
	w := watching(t, store, name)
	require.Equal(t, rec, w.next().rec)
	for range 20 {
		time.Sleep(30 * time.Millisecond)
		require.Empty(t, w.seen)
		rec = publish(t, store, name, rec, rec.Value+"+")
		require.Equal(t, rec, w.next().rec)
	}
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	require.True(t, w.next().vacant())
	time.Sleep(100 * time.Millisecond)
	require.Empty(t, w.seen)
}

// Each round of an idle watch that is alone on its stream is a read and a watch request.
func TestAnIdleWatchSendsTwoMessagesARound(t *testing.T) {
	t.Parallel() // it mostly waits
	const backstop = time.Second
	var sent count
	store := etcdkv.New(dial(t, &sent, testenv.Etcd(t)), &etcdkv.Options{Prefix: prefix, Backstop: backstop})
	name, rec := held(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	before, start := sent.Load(), time.Now()
	time.Sleep(4 * backstop)
	n := sent.Load() - before
	rounds := int64(time.Since(start)/(backstop*3/4)) + 1 // at most
	t.Logf("%d messages in up to %d rounds", n, rounds)
	require.NotZero(t, n)
	require.LessOrEqual(t, n, 2*rounds)
}

// In a store that was put back to an earlier state, the revision lies in the
// future from which the watch would go on.
func TestAWatchFindsAStoreThatWasPutBack(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := etcdkv.New(dial(t, nil, server.Addr()), &etcdkv.Options{Prefix: prefix, Backstop: time.Second})
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

func TestAWatchOfAClosedClientEnds(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}})
	require.NoError(t, err)
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix})
	name, rec := held(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	require.NoError(t, client.Close())
	o := w.next()
	require.Error(t, o.err)
	require.False(t, o.vacant())
}
