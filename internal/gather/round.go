package gather

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// errUntold stands for the verdict that a store owes.
var errUntold = errors.New("the store has not said what became of the refresh")

// A round is refreshes that one call of the store is to carry out.
type round struct {
	class  class
	ctx    context.Context
	stop   context.CancelFunc
	opened time.Time
	window *time.Timer // when it ends, the store is called

	mu       sync.Mutex
	called   bool // nothing joins any more
	parts    []*part
	live     int       // parts that were not told
	deadline time.Time // the latest of all parts
}

// A part is one refresh of a round.
type part struct {
	held     kv.Held
	tell     func(Verdict)
	deadline time.Time
	told     bool // or about to be
}

// begin makes a round whose window opens now.
func begin(c class) *round {
	r := &round{class: c, opened: time.Now()}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.window = time.AfterFunc(c.window, r.run)
	return r
}

// join adds a part. It is called with the package's mutex held, and the round is open.
func (r *round) join(p *part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.deadline.After(r.deadline) {
		r.deadline = p.deadline
	}
	r.parts = append(r.parts, p)
	r.live++
}

// call closes the round, and returns what the store is to be asked for.
func (r *round) call() (parts []*part, deadline time.Time) {
	mu.Lock()
	defer mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if open[r.class] == r {
		delete(open, r.class)
	}
	r.called = true
	if r.live > 0 {
		r.board(time.Now())
	}
	for _, p := range r.parts {
		if !p.told {
			parts = append(parts, p)
		}
	}
	return parts, r.deadline
}

// run asks the store for all parts, and tells each its verdict: the last one when
// nothing else is left to be done.
func (r *round) run() {
	defer r.stop()
	parts, deadline := r.call()
	if len(parts) == 0 {
		return
	}
	defer r.hurry(parts, deadline)()
	last := r.ask(parts, deadline)
	for _, p := range parts {
		if done, _ := r.finish(p); done { // not if the store keeps the contract
			p.tell(Verdict{Err: errUntold, Opened: r.opened})
		}
	}
	if last != nil {
		last()
	}
}

// hurry ends parts whose deadlines come well before that of the call, when they have come: one that
// is in a hurry does not cut the others short. Forget stops it.
func (r *round) hurry(parts []*part, deadline time.Time) (forget func()) {
	var timers []*time.Timer
	for _, p := range parts {
		if deadline.Sub(p.deadline) > r.class.window {
			timers = append(timers, time.AfterFunc(time.Until(p.deadline), func() { r.end(p, context.DeadlineExceeded) }))
		}
	}
	return func() {
		for _, t := range timers {
			t.Stop()
		}
	}
}

// ask calls the store. It returns what tells the last part.
func (r *round) ask(parts []*part, deadline time.Time) (last func()) {
	ctx, cancel := context.WithDeadline(r.ctx, deadline)
	defer cancel()
	records := make([]kv.Held, len(parts))
	for i, p := range parts {
		records[i] = p.held
	}
	r.class.store.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		switch first, over := r.finish(parts[i]); {
		case over:
			last = r.telling(parts[i], rec, err)
		case first:
			parts[i].tell(Verdict{rec, err, r.opened})
		}
	})
	return last
}

// telling returns what tells a part its verdict.
func (r *round) telling(p *part, rec kv.Record, err error) func() {
	return func() { p.tell(Verdict{rec, err, r.opened}) }
}

// finish reports whether a part is to be told, as it is only once, and whether it is the
// last one.
func (r *round) finish(p *part) (first, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.told {
		return false, false
	}
	p.told = true
	r.live--
	return true, r.live == 0
}
