package election

import (
	"context"
	"sync"
)

const (
	sampleRoom = 1 << 14        // calls that wait, when samples are dropped
	hookRoom   = 2 * sampleRoom // calls that wait, when all are
)

// A hookQueue makes calls of hooks, one at a time and in order, on a goroutine that lasts
// while there are any. It differs from an outbox in what it drops, because what is counted
// should be counted once: the newest, and samples of what happens all the time first.
type hookQueue struct {
	mu      sync.Mutex
	waiting []func()
	pending int // calls that wait or are being made
	dropped int
	busy    bool // the goroutine runs
}

// post arranges for do to be called soon, if there is room for so many calls; else it counts a
// call that was dropped. It does not block.
func (q *hookQueue) post(do func(), room int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.add(do, room) {
		q.dropped++
	}
}

// add arranges for do to be called soon, if there is room. It is called with mu held.
func (q *hookQueue) add(do func(), room int) bool {
	if q.pending >= room {
		return false
	}
	q.pending++
	q.waiting = append(q.waiting, do)
	if !q.busy {
		q.busy = true
		go q.work()
	}
	return true
}

// work makes the calls, until there are none left.
func (q *hookQueue) work() {
	for calls := q.next(0); len(calls) > 0; calls = q.next(len(calls)) {
		for _, do := range calls {
			do()
		}
	}
}

// next returns the calls that wait, after some have been made.
func (q *hookQueue) next(made int) []func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending -= made
	calls := q.waiting
	q.waiting = nil
	q.busy = len(calls) > 0
	return calls
}

// lost returns how many calls were dropped since it was asked last.
func (q *hookQueue) lost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.dropped
	q.dropped = 0
	return n
}

// flush waits until all calls that wait by now have been made, for a second at most.
func (q *hookQueue) flush() {
	made := make(chan struct{})
	q.mu.Lock()
	wait := q.busy && q.add(func() { close(made) }, hookRoom)
	q.mu.Unlock()
	if wait {
		pauseFor(made)
	}
}

// tell has a hook called, which is not nil.
func tell[I any](ctx context.Context, h *Hooks, room int, hook func(context.Context, I), info I) {
	ctx = context.WithoutCancel(ctx)
	h.queue.post(func() {
		if n := h.queue.lost(); n > 0 && h.Dropped != nil {
			h.Dropped(ctx, DroppedInfo{n})
		}
		hook(ctx, info)
	}, room)
}
