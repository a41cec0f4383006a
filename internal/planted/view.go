package planted

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// Bugs of adapters and of engines that a view of the store can have: the engine
// above it is the real one.

// seeing is the real engine on a view of the store. Where the store has a line, it waits in
// it: past the view, unless that has a way of its own.
func seeing(view func(*sim.Node) kv.Store) simulation.Engine {
	return simulation.Seeing(func(n *sim.Node) kv.Store {
		v := view(n)
		parts := views.Of(v)
		if parts.Queue == nil {
			parts.Queue = views.Of(n.Store).Queue
		}
		return parts.With(v)
	})
}

// above plants a bug where the candidate asks the store: what it asks then is
// noted as the store saw it.
func above(bug func(kv.Store) kv.Store) func(*sim.Node) kv.Store {
	return func(n *sim.Node) kv.Store { return bug(n.Store) }
}

// below plants a bug in the adapter: what it answers is noted.
func below(bug func(kv.Store) kv.Store) func(*sim.Node) kv.Store {
	return func(n *sim.Node) kv.Store { return n.Observe(bug(n.Link)) }
}

// resetToken counts the writes of a key that is made anew each time, as Consul's
// LockIndex does: each holder's token is 1.
func resetToken(n *sim.Node) kv.Store {
	return n.Observe(&resets{Store: n.Link, tokens: map[string]uint64{}})
}

type resets struct {
	kv.Store
	mu     sync.Mutex
	tokens map[string]uint64 // the true ones, by signature
}

func (v *resets) out(rec kv.Record, err error) (kv.Record, error) {
	if err == nil && rec.Token != 0 {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.tokens[rec.Signature] = rec.Token
		rec.Token = 1
	}
	return rec, err
}

func (v *resets) in(rec kv.Record) kv.Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	rec.Token = v.tokens[rec.Signature]
	return rec
}

// Create implements [kv.Store].
func (v *resets) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.out(v.Store.Create(ctx, name, rec))
}

// Swap implements [kv.Store].
func (v *resets) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return v.out(v.Store.Swap(ctx, name, v.in(old), next))
}

// Refresh implements [kv.Store].
func (v *resets) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.out(v.Store.Refresh(ctx, name, v.in(rec)))
}

// Delete implements [kv.Store].
func (v *resets) Delete(ctx context.Context, name string, rec kv.Record) error {
	return v.Store.Delete(ctx, name, v.in(rec))
}

// Get implements [kv.Store].
func (v *resets) Get(ctx context.Context, name string) (kv.Record, error) {
	return v.out(v.Store.Get(ctx, name))
}

// Watch implements [kv.Store].
func (v *resets) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Store.Watch(ctx, name) {
			if !yield(v.out(rec, err)) {
				return
			}
		}
	}
}

// eventsOnly never hears of a record that expires: nothing is written then.
func eventsOnly(n *sim.Node) kv.Store { return deafToExpiry{n.Store, n} }

type deafToExpiry struct {
	kv.Store
	node *sim.Node
}

// Watch implements [kv.Store].
func (v deafToExpiry) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		first := true
		for rec, err := range v.Store.Watch(ctx, name) {
			missed := !first && errors.Is(err, kv.ErrVacant) && v.node.Lapsed()
			first = false
			if !missed && !yield(rec, err) {
				return
			}
		}
	}
}

// resumedBlindly goes on with the next event after a watch was broken, and
// misses what happened in between.
func resumedBlindly(n *sim.Node) kv.Store { return &blind{Store: n.Store} }

type blind struct {
	kv.Store
	mu      sync.Mutex
	resumed bool
}

func (v *blind) resume(broken bool) (before bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, v.resumed = v.resumed, broken
	return before
}

// Watch implements [kv.Store].
func (v *blind) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		skip := v.resume(false)
		for rec, err := range v.Store.Watch(ctx, name) {
			broken := err != nil && !errors.Is(err, kv.ErrVacant) && ctx.Err() == nil
			if broken {
				v.resume(true)
			}
			if skip && !broken {
				skip = false
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// leftWatch starts a second watch that outlives the first: until the world ends,
// as its bubble would not forgive a longer life.
func leftWatch(n *sim.Node) kv.Store {
	return leaky{n.Store, func() time.Duration { return n.Ends() - n.Now() }}
}

type leaky struct {
	kv.Store
	left func() time.Duration
}

// Watch implements [kv.Store].
func (v leaky) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.left())
		go func() {
			defer cancel()
			for range v.Store.Watch(longer, name) {
			}
		}()
		v.Store.Watch(ctx, name)(yield)
	}
}

// spinning tries a create again at once while the safe is held.
func spinning(n *sim.Node) kv.Store { return spinner{n.Store} }

type spinner struct{ kv.Store }

// Create implements [kv.Store].
func (v spinner) Create(ctx context.Context, name string, rec kv.Record) (got kv.Record, err error) {
	for range 1000 {
		got, err = v.Store.Create(ctx, name, rec)
		if !errors.Is(err, kv.ErrHeld) {
			break
		}
	}
	return got, err
}

// contemptuous sees a vacancy where a foreign record is, and puts its own there.
func contemptuous(n *sim.Node) kv.Store { return contempt{n.Store} }

type contempt struct{ kv.Store }

// Create implements [kv.Store].
func (v contempt) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Store.Create(ctx, name, rec)
	if !errors.Is(err, kv.ErrHeld) {
		return got, err
	}
	if there, looked := v.Get(ctx, name); looked == nil && there.Foreign {
		return v.Swap(ctx, name, there, rec)
	}
	return got, err
}

// Watch implements [kv.Store].
func (v contempt) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Store.Watch(ctx, name) {
			if rec.Foreign {
				rec, err = kv.Record{}, kv.ErrVacant
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// neverRefreshed refreshes at another address.
func neverRefreshed(n *sim.Node) kv.Store { return misled{n.Store} }

type misled struct{ kv.Store }

// Refresh implements [kv.Store].
func (v misled) Refresh(context.Context, string, kv.Record) (kv.Record, error) {
	return kv.Record{}, errors.New("refused: port " + strconv.Itoa(2378))
}

// publishing refreshes by publishing the old value again.
func publishing(n *sim.Node) kv.Store { return publisher{n.Store} }

type publisher struct{ kv.Store }

// Refresh implements [kv.Store].
func (v publisher) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	there, err := v.Get(ctx, name)
	switch {
	case errors.Is(err, kv.ErrVacant), err == nil && !there.Owns(rec):
		return kv.Record{}, kv.ErrStale
	case err != nil:
		return kv.Record{}, err
	}
	return v.Swap(ctx, name, there, there)
}

// neverFreed deletes under a token that no record has.
func neverFreed(n *sim.Node) kv.Store { return clinging{n.Store} }

type clinging struct{ kv.Store }

// Delete implements [kv.Store].
func (v clinging) Delete(ctx context.Context, name string, rec kv.Record) error {
	rec.Token++
	return v.Store.Delete(ctx, name, rec)
}
