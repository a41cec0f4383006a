package etcdkv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// A sighting is what a watch yielded once.
type sighting struct {
	rec kv.Record
	err error
}

func (o sighting) vacant() bool { return errors.Is(o.err, kv.ErrVacant) }

// A watcher reads a watch in a goroutine of its own, until the test ends.
type watcher struct {
	t     testing.TB
	store kv.Store
	name  string
	seen  chan sighting
}

func watching(t testing.TB, store kv.Store, name string) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{t: t, store: store, name: name, seen: make(chan sighting, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for rec, err := range store.Watch(ctx, name) {
			w.seen <- sighting{rec, err}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// next returns what the watch yields next.
func (w *watcher) next() sighting {
	w.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-w.seen:
		return o
	case <-timer.C:
		require.FailNow(w.t, "the watch yields nothing")
		panic("unreachable")
	}
}

// through returns the watch after an outage that it has to survive. On a busy machine that may take so
// long that the client next connects when the ten seconds are over after which a watch ends: then it
// returns another watch.
func (w *watcher) through(outage func()) *watcher {
	w.t.Helper()
	began := time.Now()
	outage()
	if took := time.Since(began); took > 3*time.Second {
		w.t.Logf("watching anew: the outage took %v", took)
		return watching(w.t, w.store, w.name)
	}
	return w
}

// sees reads on until the watch yields rec. It must not end before.
func (w *watcher) sees(rec kv.Record) {
	w.t.Helper()
	for o := w.next(); o.rec != rec; o = w.next() {
		require.True(w.t, o.err == nil || o.vacant(), "the watch ended: %v", o.err)
	}
}
