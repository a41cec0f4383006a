// Package spare keeps leases ready that nothing has had, so that a record can be created
// in one write. A release has one granted beside its own write, for the next create.
package spare

import (
	"context"
	"sync"
	"time"
)

// A Lease is a lease of a store, or what that calls a session.
type Lease struct {
	ID    string        // empty for none
	TTL   time.Duration // as granted
	Since time.Time     // before it was granted
}

// patience is how much longer than what is done beside it a request about a lease may take.
const patience = 10 * time.Millisecond

// enough is how many leases are kept ready at most. A process that leads more elections than
// that seldom resigns from all of them to lead them again.
const enough = 64

// Leases are those that are ready, at most one for each use. Each is taken once: a lease that
// has backed a signature backs no other, except in a hand-over. A lease that is not
// taken expires. The zero value has none.
type Leases[Use comparable] struct {
	mu    sync.Mutex
	ready map[Use]Lease
}

// Take returns the lease that is ready for a use, or none. It is kept alive as by KeepAlive.
func (l *Leases[Use]) Take(ctx context.Context, use Use, keepAlive func(ctx context.Context, id string) error, do func() error) (Lease, error) {
	return KeepAlive(ctx, l.remove(use), keepAlive, do)
}

// KeepAlive has a lease kept alive while do is carried out, and returns it: its TTL counts
// from the start of the call. If that cannot be said, or there is no lease, it returns none.
func KeepAlive(ctx context.Context, one Lease, keepAlive func(ctx context.Context, id string) error, do func() error) (Lease, error) {
	if one.ID == "" {
		return Lease{}, do()
	}
	err := beside(ctx, func(ctx context.Context) {
		if keepAlive(ctx, one.ID) != nil {
			one = Lease{}
		}
	}, do)
	return one, err
}

// put keeps a lease ready.
func (l *Leases[Use]) put(use Use, one Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for old, other := range l.ready {
		if len(l.ready) >= enough || other.faded() {
			delete(l.ready, old)
		}
	}
	if l.ready == nil {
		l.ready = make(map[Use]Lease)
	}
	l.ready[use] = one
}

// Provide has a lease granted for a use, if none is ready, while do is carried out: a
// store that logs what it does logs both at once.
func (l *Leases[Use]) Provide(ctx context.Context, use Use, grant func(context.Context) (Lease, error), do func() error) error {
	if !l.lacks(use) {
		return do()
	}
	return beside(ctx, func(ctx context.Context) {
		if one, err := grant(ctx); err == nil {
			l.put(use, one)
		}
	}, do)
}

// beside carries aside out while it does what matters. That does not wait for it for long.
func beside(ctx context.Context, aside func(context.Context), do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { aside(ctx) })
	began := time.Now()
	err := do()
	late := time.AfterFunc(time.Since(began)+patience, stop)
	defer late.Stop()
	both.Wait()
	return err
}

// remove returns the lease for a use, and has it no more.
func (l *Leases[Use]) remove(use Use) Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.ready[use]
	delete(l.ready, use)
	if one.faded() {
		return Lease{}
	}
	return one
}

// lacks reports whether no lease is ready for a use, or one that fades before long.
func (l *Leases[Use]) lacks(use Use) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.ready[use]
	return time.Since(one.Since) >= one.TTL/2
}

// faded reports whether a lease may be over.
func (l Lease) faded() bool { return time.Since(l.Since) >= l.TTL }
