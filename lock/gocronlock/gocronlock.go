// Package gocronlock lets schedulers of github.com/go-co-op/gocron/v2 in several
// processes share their jobs, through a store of this library.
//
// # Elector or Locker
//
// Use an [Elector] unless there is a reason not to: one scheduler
// leads and runs all jobs, and when it is gone, another does. No two schedulers run
// the same tick of a job, however much their clocks differ, except at a change of
// leader: then a tick may be run twice, or not at all.
//
// A [Locker] spreads the jobs: at each tick the schedulers race for a lock that
// has the job's name, and those that do not get it skip the tick. This promises only
// that a job never runs twice at the same time. It does not promise
// that a job runs once per tick. The lock is free again when the job is done. So if a
// job takes less time than the difference between the clocks of two hosts (plus the
// time that the network takes), the slower host finds the lock free, and runs the job
// once more. Set lock.Options.Hold to more than that difference and less than the time
// between two ticks. Then the lock stays closed for that long, and the job runs once.
//
// # What gocron does not tell its jobs
//
// gocron asks before a job begins, and has no way to end a job that runs. So when
// a lock or the leadership is lost in the middle of a job, the job goes on, and
// another scheduler may begin it. With an Elector a job can do better: its
// [Elector.Term] has a context that ends in time, and a token for its writes.
package gocronlock

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/lock"
)

// An Elector is a gocron.Elector: jobs run where its candidate leads. Use
// [NewElector] to make one.
type Elector struct {
	candidate *election.Candidate
	term      atomic.Pointer[election.Term]
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an elector for gocron.WithDistributedElector. It stands for
// election while its Run does.
func NewElector(candidate *election.Candidate) *Elector {
	return &Elector{candidate: candidate}
}

// Run campaigns, and leads when elected, until ctx ends. Then it resigns and
// returns ctx's cause. Run it in a goroutine of its own. The elector does not
// know which jobs run. So shut the scheduler down first, which waits for them (for as
// long as gocron.WithStopTimeout says), and then end ctx.
//
// It returns another error only if the store can never do what is asked
// (kv.ErrInvalid): then this scheduler never leads.
func (e *Elector) Run(ctx context.Context) error {
	return e.candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		e.term.Store(term)
		<-ctx.Done()
		return nil
	})
}

// Term returns the term in which the candidate leads at this moment, or the reason why it
// does not: [election.ErrNoLeader] if it was never elected, otherwise why its last
// term ended. It reads the clock, and sends no requests.
func (e *Elector) Term() (*election.Term, error) {
	term := e.term.Load()
	if term == nil {
		return nil, election.ErrNoLeader
	}
	if err := term.Err(); err != nil {
		return nil, err
	}
	return term, nil
}

// IsLeader implements gocron.Elector: it returns nil while the candidate leads.
func (e *Elector) IsLeader(context.Context) error {
	_, err := e.Term()
	return err
}

// A Locker is a gocron.Locker: a job runs on the scheduler that got its lock. Use
// [NewLocker] to make one.
type Locker struct {
	store  kv.Store
	prefix string
	opts   lock.Options
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker for gocron.WithDistributedLocker. The lock of a job
// is called prefix and the job's name: name your jobs (gocron.WithName), since
// gocron's default is the name of the Go function. Options may be nil, and may be
// changed after the call. The error says which argument is wrong, and what would
// be right. If a job's name is wrong, Lock reports it.
func NewLocker(store kv.Store, prefix string, opts *lock.Options) (*Locker, error) {
	var o lock.Options
	if opts != nil {
		o = *opts
	}
	if _, err := lock.New(store, prefix+"job", &o); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return &Locker{store: store, prefix: prefix, opts: o}, nil
}

// Lock implements gocron.Locker. It does not wait: an error means that this
// scheduler skips the tick. It matches [lock.ErrHeld] if another one runs the
// job, and [lock.ErrUnavailable] if the store gave no clear answer. gocron passes
// it to a job's AfterLockError listener.
//
// The lock is freed when the job is done, even if a shutdown of the scheduler
// has ended ctx before. If the lock was lost in between, Unlock returns that, and the
// logger gets it.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m, err := lock.New(l.store, l.prefix+key, &l.opts)
	if err != nil {
		return nil, err
	}
	held, err := m.TryLock(ctx)
	if err != nil {
		return nil, err // not held: a nil pointer in it would be no nil interface
	}
	return held, nil
}
