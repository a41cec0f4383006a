package kvtest

import (
	"context"
	"errors"
	"runtime/pprof"
	"strings"
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

func (o sighting) String() string {
	if o.err != nil {
		return o.err.Error()
	}
	return describe(o.rec)
}

// A watcher reads a watch in a goroutine of its own.
type watcher struct {
	t      *trial
	name   string
	seen   chan sighting // closed when the watch is over
	cancel context.CancelFunc
	done   chan struct{}
	last   sighting // valid when done is closed
}

// A view begins to look at a safe, until the case is over: trial.watch or trial.follow.
type view func(t *trial, s kv.Store, name string) *watcher

// watched makes a check of a view one of a watch.
func watched(check func(*trial, view)) func(*trial) {
	return func(t *trial) { check(t, (*trial).watch) }
}

// watch starts a watcher, and ends it when the case is over.
func (t *trial) watch(s kv.Store, name string) *watcher {
	ctx, cancel := context.WithCancel(t.ctx)
	w := &watcher{t: t, name: name, cancel: cancel,
		seen: make(chan sighting, 256), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer close(w.seen)
		for rec, err := range s.Watch(ctx, name) {
			w.last = sighting{rec, err}
			select {
			case w.seen <- w.last:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(w.end)
	return w
}

// end ends the watch and requires that it ends promptly.
func (w *watcher) end() {
	w.t.Helper()
	w.cancel()
	timer := time.NewTimer(promptly)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		w.t.Errorf("the watch of %.80q goes on after its end", w.name)
	}
}

// goesOn requires that something came out of w.seen.
func (w *watcher) goesOn(ok bool) {
	w.t.Helper()
	if !ok {
		require.FailNow(w.t, "the watch ended by itself", "%.80q: %v", w.name, w.last)
	}
}

// anything returns what the watch yields next, be it an error. It may be as late as the
// expiry of a record with the backend's TTL.
func (w *watcher) anything() sighting {
	w.t.Helper()
	timer := time.NewTimer(w.t.lifetime(w.t.ttl).Max + patience)
	defer timer.Stop()
	select {
	case o, ok := <-w.seen:
		w.goesOn(ok)
		return o
	case <-timer.C:
		var stacks strings.Builder // say whether a look is under way, and what it waits for
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		w.t.Logf("while the watch yields nothing: %s", &stacks)
		require.FailNow(w.t, "the watch yields nothing", "the safe is %.80q", w.name)
		panic("unreachable")
	}
}

// next returns the state that the watch yields next.
func (w *watcher) next() sighting {
	w.t.Helper()
	o := w.anything()
	if o.vacant() {
		require.Zero(w.t, o.rec, "what comes with ErrVacant")
		return o
	}
	require.NoError(w.t, o.err, "the watch of %.80q", w.name)
	return o
}

// told returns what the watch has yielded that nobody has read yet.
func (w *watcher) told() (all []sighting) {
	w.t.Helper()
	for {
		select {
		case o, ok := <-w.seen:
			w.goesOn(ok)
			all = append(all, o)
		default:
			return all
		}
	}
}

// sees reads on until the watch yields rec.
func (w *watcher) sees(rec kv.Record) {
	w.t.Helper()
	for o := w.next(); o.rec != rec; o = w.next() {
		w.t.Logf("waiting for %s, the watch yielded %v", describe(rec), o)
	}
}

// seesVacancy reads on until the watch yields a vacant safe.
func (w *watcher) seesVacancy() {
	w.t.Helper()
	for o := w.next(); !o.vacant(); o = w.next() {
		w.t.Logf("waiting for the vacancy, the watch yielded %v", o)
	}
}

// seesForeign reads on until the watch yields a foreign record with the value.
func (w *watcher) seesForeign(value string) {
	w.t.Helper()
	for o := w.next(); !o.rec.Foreign || o.rec.Value != value; o = w.next() {
		w.t.Logf("waiting for %.80q, the watch yielded %v", value, o)
	}
}

// staysQuiet requires that the watch yields nothing for d.
func (w *watcher) staysQuiet(d time.Duration) {
	w.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case o, ok := <-w.seen:
		w.goesOn(ok)
		require.FailNow(w.t, "the watch reports a change where there is none", "%.80q: %v", w.name, o)
	case <-timer.C:
	}
}
