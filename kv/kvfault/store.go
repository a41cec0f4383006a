package kvfault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// A Store is a [kv.Store] that fails as it is told. Use [Wrap] to make one.
type Store struct {
	inner kv.Store

	mu       sync.Mutex
	wires    [ops]wire
	withheld []request
}

var (
	_ kv.Queue    = (*Store)(nil)
	_ kv.HandOver = (*Store)(nil)
	_ kv.Vacate   = (*Store)(nil)
)

// A request is what is on its way to the store, and returns its answer.
type request func(context.Context) (kv.Record, error)

// Wrap returns store with no faults.
func Wrap(store kv.Store) *Store {
	s := &Store{inner: store}
	for op := range s.wires {
		s.wires[op].changed = make(chan struct{})
	}
	return s
}

// Calls returns how often the operation was called so far, whatever became of
// the calls. A loop over a watch is one call.
func (s *Store) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wires[op].calls
}

// Deliver carries out, in the order of the calls, what was withheld until now,
// and returns the store's answers to each: answers that nobody waits for.
func (s *Store) Deliver(ctx context.Context) []error {
	s.mu.Lock()
	late := s.withheld
	s.withheld = nil
	s.mu.Unlock()
	errs := make([]error, 0, len(late))
	for _, carryOut := range late {
		_, err := carryOut(ctx)
		errs = append(errs, err)
	}
	return errs
}

// Create implements [kv.Store].
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.call(ctx, Create, name, func(ctx context.Context) (kv.Record, error) {
		return s.inner.Create(ctx, name, rec)
	})
}

// Swap implements [kv.Store].
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return s.call(ctx, Swap, name, func(ctx context.Context) (kv.Record, error) {
		return s.inner.Swap(ctx, name, old, next)
	})
}

// Refresh implements [kv.Store].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.call(ctx, Refresh, name, func(ctx context.Context) (kv.Record, error) {
		return s.inner.Refresh(ctx, name, rec)
	})
}

// Delete implements [kv.Store].
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := s.call(ctx, Delete, name, func(ctx context.Context) (kv.Record, error) {
		return kv.Record{}, s.inner.Delete(ctx, name, rec)
	})
	return err
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	return s.call(ctx, Get, name, func(ctx context.Context) (kv.Record, error) {
		return s.inner.Get(ctx, name)
	})
}

// Lines implements [kv.Queue]. It asks no server, so it has no faults.
func (s *Store) Lines() bool {
	q, ok := s.inner.(kv.Queue)
	return ok && q.Lines()
}

// Join implements [kv.Queue] if the store within does.
func (s *Store) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.call(ctx, Join, name, func(ctx context.Context) (kv.Record, error) {
		q, ok := s.inner.(kv.Queue)
		if !ok {
			return kv.Record{}, fmt.Errorf("kvfault: lines: %w", errors.ErrUnsupported)
		}
		return q.Join(ctx, name, rec)
	})
}

// Stay implements [kv.Queue] if the store within does.
func (s *Store) Stay(ctx context.Context, name string, rec kv.Record) (_ kv.Record, leads bool, _ error) {
	rec, err := s.call(ctx, Stay, name, func(ctx context.Context) (place kv.Record, err error) {
		q, ok := s.inner.(kv.Queue)
		if !ok {
			return kv.Record{}, fmt.Errorf("kvfault: lines: %w", errors.ErrUnsupported)
		}
		place, leads, err = q.Stay(ctx, name, rec)
		return place, err
	})
	return rec, leads && err == nil, err
}

// HandOver implements [kv.HandOver] if the store within does.
func (s *Store) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	return s.call(ctx, HandOver, name, func(ctx context.Context) (kv.Record, error) {
		whole, ok := s.inner.(kv.HandOver)
		if !ok {
			return kv.Record{}, fmt.Errorf("kvfault: hand-overs in one step: %w", errors.ErrUnsupported)
		}
		return whole.HandOver(ctx, name, old, place, heir, note)
	})
}

// Vacate implements [kv.Vacate] if the store within does. Faults of Delete strike it.
func (s *Store) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	whole, ok := s.inner.(kv.Vacate)
	if !ok {
		return kv.Record{}, fmt.Errorf("kvfault: vacate in one step: %w", errors.ErrUnsupported)
	}
	return s.call(ctx, Delete, name, func(ctx context.Context) (kv.Record, error) {
		return whole.Vacate(ctx, name, rec, place)
	})
}

// Lifetime implements [kv.Store]. It asks no server, so it has no faults.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	return s.inner.Lifetime(ttl)
}

// call sends a request over the operation's wire.
func (s *Store) call(ctx context.Context, op Op, name string, carryOut request) (kv.Record, error) {
	s.count(op)
	r, changed := s.strike(op)
	if !wait(ctx, r.request) {
		return lost(ctx, op, name)
	}
	switch r.kind {
	case dropRequest:
		<-ctx.Done()
		return lost(ctx, op, name)
	case withhold:
		s.keepBack(carryOut)
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

func (s *Store) count(op Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wires[op].calls++
}

func (s *Store) keepBack(carryOut request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withheld = append(s.withheld, carryOut)
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
