package electionhttp

import (
	"context"
	"errors"
	"sync"
)

// A flight makes one read at a time, for all that wait for its answer. Each gets the answer to a
// read that began after it had asked: no answer is older than its question.
type flight[T any] struct {
	mu   sync.Mutex
	busy bool
	next *reading[T] // that has not begun; nil if nobody waits for it
}

// A reading is one read and its answer.
type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// errClosed is the error of a handler that was closed.
var errClosed = errors.New("the server is shutting down")

// ask returns what a read has answered. Start does something in the background, unless that is
// too late.
func (f *flight[T]) ask(ctx context.Context, start func(func()) bool, read func() (T, error)) (value T, _ error) {
	r := f.join(start, read)
	if r == nil {
		return value, errClosed
	}
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// join returns the next read, which begins as soon as none is under way.
func (f *flight[T]) join(start func(func()) bool, read func() (T, error)) *reading[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.busy {
		f.busy = start(func() { f.fly(read) })
	}
	if f.busy && f.next == nil {
		f.next = &reading[T]{done: make(chan struct{})}
	}
	return f.next
}

// fly reads for as long as somebody waits.
func (f *flight[T]) fly(read func() (T, error)) {
	for {
		f.mu.Lock()
		r := f.next
		f.next = nil
		f.busy = r != nil
		f.mu.Unlock()
		if r == nil {
			return
		}
		r.value, r.err = read()
		close(r.done)
	}
}
