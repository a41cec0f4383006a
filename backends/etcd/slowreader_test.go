package etcdkv_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// heap returns how many bytes are in use once what is garbage is gone.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The reader is busy while large values are published. What the process keeps of
// them is not to grow with their number.
func TestAWatchKeepsTheNewestStateAloneForASlowReader(t *testing.T) {
	const changes, size = 24, 256 << 10
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store, client := openWith(t, nil, options, testenv.Etcd(t)), dial(t, nil, testenv.Etcd(t))
		name, rec := held(t, store)
		yields := 0
		for got, err := range openWith(t, nil, options, testenv.Etcd(t)).Watch(within(t, 4*patience), name) {
			require.NoError(t, err)
			if yields++; yields == 1 {
				rec = publish(t, store, name, rec, "begun")
				continue
			}
			if got == rec && len(rec.Value) == size {
				break
			}
			if yields > 2 { // a state that was on its way
				continue
			}
			before := heap()
			for i := range changes {
				rec = publish(t, store, name, rec, strings.Repeat(string(rune('A'+i%26)), size))
			}
			require.Eventually(t, func() bool { return heap()-before < changes*size/2 }, patience, 100*time.Millisecond,
				"the watch keeps what its reader has no time for")
		}
		require.NoError(t, store.Delete(within(t, patience), name, rec))
		resp, err := client.Get(within(t, patience), prefix+name)
		require.NoError(t, err)
		_, err = client.Compact(within(t, patience), resp.Header.Revision) // the values are large
		require.NoError(t, err)
	})
}

// Those who lead come and go while the reader is busy, and so do those who wait.
func TestASlowReaderOfALineIsToldWhoLeadsNow(t *testing.T) {
	const changes, enough = 15, 5
	each(t, queues(), func(t *testing.T, options layout) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		yields := 0
		for got, err := range openWith(t, nil, options, testenv.Etcd(t)).Watch(within(t, patience), name) {
			require.NoError(t, err)
			switch yields++; yields {
			case 1:
				rec = publish(t, store, name, rec, "begun")
			case 2:
				for range changes {
					next, gone := joined(t, store, name, signed("next")), joined(t, store, name, signed("gone"))
					require.NoError(t, store.Delete(within(t, patience), name, rec))
					require.NoError(t, store.Delete(within(t, patience), name, gone))
					rec = next
				}
				time.Sleep(100 * time.Millisecond)
			default:
				require.Less(t, yields, 2+enough, "%d have led meanwhile", changes)
				time.Sleep(20 * time.Millisecond)
			}
			if yields > 2 && got == rec {
				return
			}
		}
	})
}

// The server compacts what the reader would be told of next, while it is busy: of a
// plain value the companion is not read before.
func TestASlowReaderIsToldTheTruthAfterACompaction(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		client, store := dial(t, nil, server.Addr()), openWith(t, nil, options, server.Addr())
		name, rec := held(t, store)
		yields := 0
		for got, err := range openWith(t, nil, options, server.Addr()).Watch(within(t, patience), name) {
			require.NoError(t, err)
			require.Less(t, yields, 10)
			if yields++; yields == 1 {
				for range 5 {
					rec = publish(t, store, name, rec, rec.Value+"+")
				}
				resp, err := client.Put(within(t, patience), prefix+"another", "moves the revision on")
				require.NoError(t, err)
				_, err = client.Compact(within(t, patience), resp.Header.Revision)
				require.NoError(t, err)
			}
			if got == rec {
				return
			}
		}
	})
}

// A reader that does not come back from the loop's body ends the watch all the same.
func TestAWatchEndsWhenItsReaderPanics(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	name, _ := held(t, store)
	before := runtime.NumGoroutine()
	for range 20 {
		require.Panics(t, func() {
			for range store.Watch(t.Context(), name) {
				panic("the reader")
			}
		})
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 }, patience, 10*time.Millisecond)
}
