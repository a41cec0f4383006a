package etcdkv_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// Followed are many safes that are followed, and what was told of each last.
type followed struct {
	t     testing.TB
	store kv.Board
	stops []func()

	mu   sync.Mutex
	last map[string]sighting
}

// following follows safes until the test ends, or stop is called.
func following(t testing.TB, store kv.Board, names ...string) *followed {
	t.Helper()
	f := &followed{t: t, store: store, last: make(map[string]sighting)}
	for _, name := range names {
		f.add(name)
	}
	t.Cleanup(f.stop)
	return f
}

func (f *followed) add(name string) {
	f.stops = append(f.stops, f.store.Follow(name, func(rec kv.Record, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.last[name] = sighting{rec, err}
	}))
}

// stop ends the following of all.
func (f *followed) stop() {
	for _, stop := range f.stops {
		stop()
	}
	f.stops = nil
}

// told returns what was told of a safe last.
func (f *followed) told(name string) sighting {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[name]
}

// seeAll waits until every safe is said to hold its record.
func (f *followed) seeAll(recs map[string]kv.Record) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		for name, rec := range recs {
			if f.told(name) != (sighting{rec: rec}) {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
}

// holdMany puts a record into each of n new safes.
func holdMany(t testing.TB, store kv.Store, n int) (names []string, recs map[string]kv.Record) {
	t.Helper()
	recs = make(map[string]kv.Record)
	for range n {
		name, rec := held(t, store)
		names = append(names, name)
		recs[name] = rec
	}
	return names, recs
}

// publishAll changes the value of all records.
func publishAll(t testing.TB, store kv.Store, recs map[string]kv.Record, value string) {
	t.Helper()
	for name, rec := range recs {
		recs[name] = publish(t, store, name, rec, value)
	}
}

// settles waits until no more goroutines run than before. (Eventually has one of its own.)
func settles(t testing.TB, before int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%d goroutines, and %d before", runtime.NumGoroutine(), before)
	}
}
