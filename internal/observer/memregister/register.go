// Package memregister keeps cells in the memory of one process, for tests of what
// stands upon an [observer.Register].
package memregister

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// Floor is the shortest TTL.
const Floor = time.Millisecond

// Register is an [observer.Register] in memory. Use [New] to make one.
type Register struct {
	mu    sync.Mutex
	cells map[string]*cell
	count uint64 // the last token or revision given out
	puts  int    // writes that were carried out
	asked int    // requests
}

var _ observer.Register = (*Register)(nil)

// A cell outlives what it holds, so that those who watch it keep their place.
type cell struct {
	rec     kv.Record     // zero if it is empty
	changed chan struct{} // closed at the next change
}

// New returns a register in which all cells are empty.
func New() *Register {
	return &Register{cells: make(map[string]*cell)}
}

// Requests returns how many requests there were: reads, watches and writes.
func (r *Register) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Writes returns how many writes were carried out.
func (r *Register) Writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.puts
}

// Get implements [observer.Register].
func (r *Register) Get(ctx context.Context, name string) (kv.Record, error) {
	if ctx.Err() != nil {
		return kv.Record{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return state(r.at(name).rec)
}

// Put implements [observer.Register].
func (r *Register) Put(ctx context.Context, name string, old, next kv.Record) (rec kv.Record, err error) {
	err = r.write(ctx, name, old, func(c *cell) {
		r.count++
		rec = kv.Record{Signature: next.Signature, Value: next.Value, Note: next.Note, TTL: next.TTL, Token: r.count, Revision: r.count}
		if old.Signature == next.Signature {
			rec.Token = old.Token
		}
		c.rec = rec
	})
	return rec, err
}

// Remove implements [observer.Register].
func (r *Register) Remove(ctx context.Context, name string, old kv.Record) error {
	return r.write(ctx, name, old, func(c *cell) { c.rec = kv.Record{} })
}

// write carries out a write if the cell holds old.
func (r *Register) write(ctx context.Context, name string, old kv.Record, do func(*cell)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	c := r.at(name)
	if c.rec.Revision != old.Revision || c.rec.Signature != old.Signature || c.rec.Token != old.Token {
		return fmt.Errorf("memregister: %q: %w", name, kv.ErrStale)
	}
	r.puts++
	do(c)
	c.wake()
	return nil
}

// Watch implements [observer.Register].
func (r *Register) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		r.mu.Lock()
		r.asked++
		r.mu.Unlock()
		for last, first := (kv.Record{}), true; ctx.Err() == nil; first = false {
			r.mu.Lock()
			c := r.at(name)
			rec, changed := c.rec, c.changed
			r.mu.Unlock()
			if (first || rec != last) && !yield(state(rec)) {
				return
			}
			last = rec
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		yield(kv.Record{}, context.Cause(ctx))
	}
}

// Check implements [observer.Register].
func (r *Register) Check(ttl time.Duration) error {
	if ttl < Floor {
		return fmt.Errorf("memregister: TTL %v is too short: use at least %v: %w", ttl, Floor, kv.ErrInvalid)
	}
	return nil
}

// Overwrite writes over whatever a cell holds, as another program would.
func (r *Register) Overwrite(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	c := r.at(name)
	c.rec = kv.DecodeObserved(value)
	c.rec.Revision, c.rec.Permanent = r.count, true
	c.wake()
}

// Empty empties a cell, as an operator would.
func (r *Register) Empty(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.at(name)
	c.rec = kv.Record{}
	c.wake()
}

// at returns the cell of a name. The caller holds the mutex.
func (r *Register) at(name string) *cell {
	c := r.cells[name]
	if c == nil {
		c = &cell{changed: make(chan struct{})}
		r.cells[name] = c
	}
	return c
}

func (c *cell) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func state(rec kv.Record) (kv.Record, error) {
	if rec == (kv.Record{}) {
		return rec, kv.ErrVacant
	}
	return rec, nil
}

// Clock returns a reader of both clocks that shows the time of a testing/synctest
// bubble.
func Clock() func() (mono, boot time.Duration) {
	start := time.Now()
	return func() (mono, boot time.Duration) { return time.Since(start), time.Since(start) }
}
