package etcdkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// While the watch is cut off, one goes, another comes, and the revision goes
// from which the watch would go on.
func TestAWatchOfALineSurvivesACompaction(t *testing.T) {
	t.Parallel() // it mostly waits
	each(t, queues(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		proxy := testenv.NewProxy(t, server.Addr())
		client, store := dial(t, nil, server.Addr()), openWith(t, nil, options, server.Addr())
		name, rec := held(t, store)
		w := watching(t, openWith(t, nil, options, proxy.Addr()), name)
		w.sees(rec)
		for range 3 {
			second, third := joined(t, store, name, signed("second")), joined(t, store, name, signed("third"))
			w = w.through(func() {
				proxy.Cut()
				require.NoError(t, store.Delete(within(t, patience), name, rec))
				require.NoError(t, store.Delete(within(t, patience), name, second))
				resp, err := client.Get(within(t, patience), prefix+name)
				require.NoError(t, err)
				_, err = client.Compact(within(t, patience), resp.Header.Revision)
				require.NoError(t, err)
				proxy.Heal()
			})
			w.sees(third)
			rec = third
		}
		rec = publish(t, store, name, rec, "the last")
		w.sees(rec)
	})
}

func TestAWatchOfALineSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel() // it mostly waits
	each(t, queues(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		store := openWith(t, nil, options, server.Addr())
		name, rec := held(t, store)
		w := watching(t, store, name)
		w.sees(rec)
		for range 2 {
			next := joined(t, store, name, signed("next"))
			w = w.through(server.Restart)
			require.False(t, stays(t, store, name, next), "the line has outlived the restart")
			require.NoError(t, store.Delete(within(t, patience), name, rec))
			w.sees(next)
			rec = next
		}
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		require.True(t, w.next().vacant())
	})
}

// What happens behind the first is no change of the safe, and costs no requests.
func TestAWatchTellsNothingOfThoseWhoWait(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		var sent count
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		w := watching(t, openWith(t, &sent, options, testenv.Etcd(t)), name)
		require.Equal(t, rec, w.next().rec)
		before := sent.Load()
		for range 10 {
			place := joined(t, store, name, signed("waits"))
			put(t, client, name+"/behind", "somebody")
			require.NoError(t, store.Delete(within(t, patience), name, place))
			remove(t, client, name+"/behind")
		}
		rec = publish(t, store, name, rec, "published")
		require.Equal(t, rec, w.next().rec, "nothing came before")
		reads := int64(0)
		if options.Plain {
			reads = 1 // of the new value's companion
		}
		require.LessOrEqual(t, sent.Load()-before, 1+reads, "the stream may have been confirmed")
	})
}

// One Txn replaces one key by another: the safe is vacant at no moment.
func TestAWatchSeesNoVacancyWhereThereIsNone(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		w := watching(t, store, name)
		require.Equal(t, rec, w.next().rec)
		for range 20 {
			next, err := store.Swap(within(t, patience), name, rec, signed("next"))
			require.NoError(t, err)
			o := w.next()
			require.NoError(t, o.err)
			require.Equal(t, next, o.rec)
			rec = next
		}
	})
}

// The leader's program is gone, and with it everybody who would say so.
func TestAWatchOfALineSeesTheFirstFade(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		t.Parallel() // it mostly waits
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		mortal := signed("fades")
		mortal.TTL = 10 * time.Second
		name, start := mortal.Signature, time.Now()
		rec, err := store.Create(within(t, patience), name, mortal)
		require.NoError(t, err)
		alive, die := context.WithCancel(within(t, patience))
		defer die()
		beats, err := client.KeepAlive(alive, leaseOf(t, rec))
		require.NoError(t, err)
		place := joined(t, store, name, signed("waits"))
		old := mutex(t, client, name)
		locked := locking(t, client, options, name, old)
		w := watching(t, store, name)
		require.Equal(t, rec, w.next().rec)
		require.NotNil(t, <-beats)
		die()
		require.Equal(t, place, w.next().rec)
		require.GreaterOrEqual(t, time.Since(start), rec.TTL)
		require.True(t, stays(t, store, name, place))
		requireLost(t, store, name, rec)
		require.Empty(t, locked)
		_, err = client.Revoke(within(t, patience), leaseOf(t, place))
		require.NoError(t, err)
		require.NoError(t, <-locked)
		o := w.next()
		require.True(t, o.rec.Foreign)
		require.Empty(t, o.rec.Value)
	})
}

// The watch is told of a value, and before it has read the companion, the
// revision goes at which it would.
func TestAWatchOfPlainValuesSurvivesACompaction(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		client, store := dial(t, nil, server.Addr()), openWith(t, nil, options, server.Addr())
		name, rec := held(t, store)
		watched, meddle := meddledWithAt(t, options, "/Range", server.Addr())
		reads := 0
		var count func()
		count = func() { // in the watch's goroutine alone
			*meddle = count
			if reads++; reads != 3 { // the line and a companion come first
				return
			}
			now, err := store.Get(within(t, patience), name)
			if err == nil {
				now, err = store.Swap(within(t, patience), name, now, kv.Record{Signature: now.Signature, Value: "third"})
			}
			if err == nil {
				_, err = client.Compact(within(t, patience), int64(now.Revision))
			}
			if err != nil {
				t.Error(err)
			}
		}
		*meddle = count
		w := watching(t, watched, name)
		require.Equal(t, rec, w.next().rec)
		publish(t, store, name, rec, "second")
		w.seesValue("third")
	})
}

// seesValue reads on until the watch yields the value. All that it yields is ours.
func (w *watcher) seesValue(value string) {
	w.t.Helper()
	for rec := (kv.Record{}); rec.Value != value; {
		o := w.next()
		require.NoError(w.t, o.err)
		require.False(w.t, o.rec.Foreign, "%+v", o.rec)
		rec = o.rec
	}
}

// A Get of a plain value takes two reads. Between them the first one's revision
// goes.
func TestAGetOfAPlainValueLooksAgainAfterACompaction(t *testing.T) {
	each(t, plain(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		client, store := dial(t, nil, server.Addr()), openWith(t, nil, options, server.Addr())
		name, rec := held(t, store)
		reader, meddle := meddledWithAt(t, options, "/Range", server.Addr())
		*meddle = func() { // before the first read
			*meddle = func() { // before the second
				rec = publish(t, store, name, rec, "published")
				_, err := client.Compact(within(t, patience), int64(rec.Revision))
				require.NoError(t, err)
			}
		}
		got, err := reader.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.Equal(t, "published", got.Value)
	})
}
