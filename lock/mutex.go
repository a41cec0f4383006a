package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

var (
	// ErrHeld means that another has the lock: another process, another
	// goroutine that uses the same Mutex, or a program that does not use this
	// library. Or nobody has it, but its last holder's Options.Hold is not over. The
	// error's text says who has it, as far as the store knows.
	ErrHeld = election.ErrHeld

	// ErrLost means that the lock was lost while it was held: it could not be
	// refreshed in time, or its record was removed or overwritten. It is the cause of
	// the held lock's context then.
	ErrLost = election.ErrLost

	// ErrUnlocked is the cause of a held lock's context after Unlock.
	ErrUnlocked = election.ErrResigned

	// ErrUnavailable means that the store did not answer, or not clearly, or too
	// late. It wraps the store's error.
	ErrUnavailable = errors.New("lock: the store is not available")

	// ErrMisuse means a mistake in the program: a lock that is unlocked twice, or
	// was never held, or was not made by New.
	ErrMisuse = errors.New("lock: misuse")
)

// errTurn means that another goroutine of this process has the lock, or waits
// for it.
var errTurn = fmt.Errorf("%w: another goroutine that uses the same Mutex", ErrHeld)

// errNoMutex means that a Mutex has no store.
var errNoMutex = fmt.Errorf("%w: a Mutex that New has not made", ErrMisuse)

// Options say how locks are held. The zero value of each field means its
// default. The fields are those of election.Options, which says more.
type Options struct {
	ID     string        // names the holder to people. Default: host name and process id
	Value  string        // is shown to others that ask who has the lock
	TTL    time.Duration // how long a holder that vanished keeps others out. Default: 15 s
	Margin time.Duration // what the work may need to stop after a loss. Default: a tenth of the TTL
	Hold   time.Duration // how long the lock stays closed to all from when it was locked, unlocked or not. Default: no longer than it is held
	Logger *slog.Logger  // gets one record for each change of state. Default: silence

	Hooks *election.Hooks // are told what is done for the lock: each Lock is a campaign. Default: none
}

// A Mutex is a lock that processes share under one name in one store. Use [New] to
// make one. It may be used by any number of goroutines, which exclude each other
// as well. It holds no connection, and there is nothing to close.
type Mutex struct {
	name      string
	candidate *election.Candidate
	turn      chan struct{} // has a value while a goroutine of this process locks, or holds
}

// New returns the lock called name. It sends no requests. Options may be
// nil. The error says which argument is wrong, and what would be right.
func New(store kv.Store, name string, opts *Options) (*Mutex, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	c, err := election.New(store, name, &election.Options{
		NoHeir: true,
		ID:     o.ID, Value: o.Value, TTL: o.TTL, Margin: o.Margin, Hold: o.Hold, Logger: o.Logger, Hooks: o.Hooks,
	})
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return &Mutex{name: name, candidate: c, turn: make(chan struct{}, 1)}, nil
}

// Lock waits until the lock is free, and returns it held. ctx bounds only the waiting,
// never the holding; its values are in the held lock's context. Goroutines
// that use one Mutex take turns. A goroutine that locks again what it holds waits for
// itself, as with a sync.Mutex.
//
// While the store is in trouble Lock goes on trying. When ctx ends it returns an
// error that matches ctx's error. The error also matches ErrHeld if another had the lock
// by the store's last answer, and ErrUnavailable otherwise; it wraps the store's error. If
// the store does not answer, Lock may return up to a third of the TTL late, because it
// removes what it may have written.
func (m *Mutex) Lock(ctx context.Context) (*Held, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	select {
	case m.turn <- struct{}{}:
		return m.hold(m.wait(ctx))
	case <-ctx.Done():
		return nil, m.failed(errTurn, endOf(ctx))
	}
}

// TryLock makes one attempt, and does not wait for the lock. If another process has it,
// or another goroutine that uses this Mutex has it or waits for it, the error
// matches ErrHeld. If the store gives no clear answer, the error matches ErrUnavailable,
// and TryLock removes what it may have written. Each request may take a third of the
// TTL.
func (m *Mutex) TryLock(ctx context.Context) (*Held, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	select {
	case m.turn <- struct{}{}:
		return m.hold(m.try(ctx))
	default:
		return nil, m.failed(errTurn)
	}
}

// Do locks, calls work, and unlocks when work has returned. The context that work
// gets ends when the lock is lost and when ctx ends. Until work has returned,
// the lock is refreshed if possible. work is not called if Lock fails.
//
// It returns the errors of work and of [Held.Unlock]: ErrLost if the lock was
// lost before work returned.
func (m *Mutex) Do(ctx context.Context, work func(ctx context.Context, held *Held) error) (err error) {
	if work == nil {
		return m.failed(ErrMisuse, errors.New("there is no work to do"))
	}
	held, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock(ctx)) }()
	ctx, stop := held.during(ctx)
	defer stop()
	return work(ctx, held)
}

// check returns an error if there is no point in asking the store.
func (m *Mutex) check(ctx context.Context) error {
	switch {
	case m.candidate == nil:
		return m.failed(errNoMutex)
	case ctx.Err() != nil:
		return m.failed(endOf(ctx))
	}
	return nil
}

// try makes one attempt.
func (m *Mutex) try(ctx context.Context) (*election.Term, error) {
	term, err := m.candidate.TryCampaign(ctx)
	switch {
	case err == nil:
		return term, nil
	case errors.Is(err, ErrHeld), errors.Is(err, kv.ErrInvalid):
		return nil, m.failed(err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return nil, m.failed(ErrUnavailable, err, endOf(ctx))
	}
	return nil, m.failed(ErrUnavailable, err)
}

// wait tries until ctx ends.
func (m *Mutex) wait(ctx context.Context) (*election.Term, error) {
	term, err := m.candidate.Campaign(ctx)
	switch {
	case err == nil:
		return term, nil
	case errors.Is(err, ErrHeld), errors.Is(err, kv.ErrInvalid):
		return nil, m.failed(err)
	}
	return nil, m.failed(ErrUnavailable, err)
}

// hold makes a lock of a term. Without one it is the next goroutine's turn.
func (m *Mutex) hold(term *election.Term, err error) (*Held, error) {
	if err != nil {
		<-m.turn
		return nil, err
	}
	return &Held{name: m.name, term: term, pass: sync.OnceFunc(func() { <-m.turn })}, nil
}

// failed says why the lock could not be had.
func (m *Mutex) failed(reasons ...error) error {
	return failed(m.name, reasons...)
}

func failed(name string, reasons ...error) error {
	err := reasons[0]
	for _, reason := range reasons[1:] {
		err = fmt.Errorf("%w: %w", err, reason)
	}
	return fmt.Errorf("lock: %q: %w", name, err)
}

// endOf returns an error that is both a context's error and its cause.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}
