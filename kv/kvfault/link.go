package kvfault

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// A Link is the way to a store, on which calls fail as it is told. Use [Wrap] to make one.
type Link struct {
	// Store is the store as it is seen over the link. It is a [kv.Queue], a [kv.HandOver], a
	// [kv.Vacate], a [kv.Batch] or a [kv.Roster] exactly if the store itself is. It is no
	// [kv.Board], because faults strike each watch.
	Store kv.Store

	inner kv.Store

	mu       sync.Mutex
	wires    [ops]wire
	withheld []request
}

// A request is what is on its way to the store, and returns its answer.
type request func(context.Context) (kv.Record, error)

// Wrap returns a link to store with no faults.
func Wrap(store kv.Store) *Link {
	l := &Link{inner: store}
	for op := range l.wires {
		l.wires[op].changed = make(chan struct{})
	}
	l.Store = views.Over(store, view{l})
	return l
}

// Calls returns how often the operation was called so far, whatever became of
// the calls. A loop over a watch is one call.
func (l *Link) Calls(op Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wires[op].calls
}

// Deliver carries out, in the order of the calls, what was withheld until now,
// and returns the store's answers to each: answers that nobody waits for.
func (l *Link) Deliver(ctx context.Context) []error {
	l.mu.Lock()
	late := l.withheld
	l.withheld = nil
	l.mu.Unlock()
	errs := make([]error, 0, len(late))
	for _, carryOut := range late {
		_, err := carryOut(ctx)
		errs = append(errs, err)
	}
	return errs
}

// call sends a request over the operation's wire.
func (l *Link) call(ctx context.Context, op Op, name string, carryOut request) (kv.Record, error) {
	l.count(op)
	r, changed := l.strike(op)
	if !wait(ctx, r.request) {
		return lost(ctx, op, name)
	}
	switch r.kind {
	case dropRequest:
		<-ctx.Done()
		return lost(ctx, op, name)
	case withhold:
		l.keepBack(carryOut)
		<-ctx.Done()
		return lost(ctx, op, name)
	case fail:
		return kv.Record{}, r.err
	case hang:
		<-changed
		ctx = context.WithoutCancel(ctx)
	}
	rec, err := carryOut(ctx)
	if !wait(ctx, r.reply) {
		return lost(ctx, op, name)
	}
	switch r.kind {
	case dropReply:
		<-ctx.Done()
		return lost(ctx, op, name)
	case failReply:
		return kv.Record{}, r.err
	}
	return rec, err
}

func (l *Link) count(op Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wires[op].calls++
}

func (l *Link) keepBack(carryOut request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.withheld = append(l.withheld, carryOut)
}

// lost is what a caller learns whose context has ended before an answer came.
func lost(ctx context.Context, op Op, name string) (kv.Record, error) {
	return kv.Record{}, fmt.Errorf("kvfault: %v %.80q: no answer: %w", op, name, context.Cause(ctx))
}

// wait returns true once d has passed, and false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
