package kvtest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const watchEnds = "Every other error is the last thing that Watch yields; when ctx ends, that error is ctx's error or cause. What it started ends with the loop."

var watchEndCases = []Case{
	{Name: "a watch ends with its context, and says so", Clause: watchEnds, check: aWatchEndsWithItsContext},
	{Name: "a watch tells of the cause or the error of its context", Clause: watchEnds, check: aWatchTellsOfItsContextsEnd},
	{Name: "a watch ends at once if its context has ended", Clause: watchEnds, check: aWatchEndsAtOnceIfItsContextHasEnded},
	{Name: "a watch ends when its reader leaves the loop", Clause: watchEnds, check: aWatchEndsWhenItsReaderLeavesTheLoop},
	{Name: "watches leave no goroutines behind", Clause: watchEnds, check: watchesLeaveNoGoroutinesBehind, alone: true},
}

// states returns safes in each state in which a watch can wait.
func (t *trial) states() map[string]string {
	held, _ := t.held()
	states := map[string]string{"vacant": t.name(), "held": held}
	if t.b.Put != nil {
		states["foreign"] = t.occupied("somebody")
	}
	return states
}

func aWatchEndsWithItsContext(t *trial) {
	for state, name := range t.states() {
		w := t.watch(t.s, name)
		w.next()
		w.end()
		<-w.done
		require.ErrorIs(t, w.last.err, context.Canceled, "the last thing that the watch of a %s safe yields", state)
		require.Zero(t, w.last.rec)
	}
}

func aWatchTellsOfItsContextsEnd(t *trial) {
	why := errors.New("the reader has seen enough")
	for state, name := range t.states() {
		ctx, cancel := context.WithCancelCause(t.ctx)
		var last error
		for _, err := range t.s.Watch(ctx, name) {
			last = err
			cancel(why)
		}
		cancel(nil)
		require.True(t, errors.Is(last, why) || errors.Is(last, context.Canceled), "the watch of a %s safe ended with %v", state, last)

		ctx, stop := context.WithTimeout(t.ctx, t.ttl/5)
		start := time.Now()
		for _, err := range t.s.Watch(ctx, name) {
			last = err
		}
		stop()
		require.ErrorIs(t, last, context.DeadlineExceeded, "the watch of a %s safe", state)
		require.Less(t, time.Since(start), t.ttl/5+promptly)
	}
}

func aWatchEndsAtOnceIfItsContextHasEnded(t *trial) {
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	for state, name := range t.states() {
		start := time.Now()
		var last error
		for _, err := range t.s.Watch(ctx, name) {
			require.True(t, last == nil || errors.Is(last, kv.ErrVacant), "%v came before %v", last, err)
			last = err
		}
		require.ErrorIs(t, last, context.Canceled, "the watch of a %s safe", state)
		require.Less(t, time.Since(start), promptly)
	}
}

func aWatchEndsWhenItsReaderLeavesTheLoop(t *trial) {
	for state, name := range t.states() {
		start := time.Now()
		for range 3 {
			for range t.s.Watch(t.ctx, name) {
				break
			}
		}
		require.Less(t, time.Since(start), patience, "the watch of a %s safe", state)
	}
}

// Clients keep a few goroutines for connections that they keep open; a watch
// that leaks keeps one or more each time.
func watchesLeaveNoGoroutinesBehind(t *trial) {
	const watches = 40
	states := t.states()
	for _, name := range states {
		w := t.watch(t.s, name)
		w.next()
		w.end()
	}
	before := goroutines()
	for _, name := range states {
		for range watches {
			for range t.s.Watch(t.ctx, name) {
				break
			}
		}
		var crowd []*watcher
		for range watches {
			crowd = append(crowd, t.watch(t.s, name))
		}
		for _, w := range crowd {
			w.next()
		}
		for _, w := range crowd {
			w.end()
		}
	}
	t.settles(before, watches/2)
}
