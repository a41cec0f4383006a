// Package gocronlock lets schedulers of github.com/go-co-op/gocron/v2 in several
// processes share their jobs, through a store of this library.
//
// # Elector or Locker
//
// An [Elector] is what to use unless there is a reason not to: one scheduler
// leads and runs all jobs; when it is gone, another does. No two schedulers run
// the same tick of a job, however their clocks differ, but at a change of leader
// one may be run twice, or by nobody.
//
// A [Locker] spreads the jobs: at each tick the schedulers race for a lock that
// has the job's name, and those who do not get it skip the tick. That promises
// that a job never runs twice at the same time, and no more. It does not promise
// that it runs once per tick: the lock is free again when the job is done, so if a
// job takes less time than the clocks of two hosts differ (plus what the network
// takes), the slower one finds the lock free, and runs the job once more. With
// lock.Options.Hold, of more than the clocks differ and less than the time between
// two ticks, the lock stays closed for so long, and the job runs once.
//
// # What gocron does not tell its jobs
//
// gocron asks before a job begins, and has no way to end a job that runs. So when
// a lock or the leadership is lost in the middle of a job, the job goes on, and
// another scheduler may begin it. With an Elector a job can do better: its
// [Elector.Term] has a context that ends in time, and a token for what it writes.
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

// Run campaigns, and leads when elected, until ctx ends; then it resigns and
// returns ctx's cause. Run it in a goroutine of its own. As the elector cannot
// know which jobs run, shut the scheduler down first, which waits for them (as
// long as gocron.WithStopTimeout says), and end ctx then.
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

// Term returns the term in which the candidate leads at this moment, or why it
// does not: [election.ErrNoLeader] if it was never elected, else why its last
// term ended. It looks at the clock, and asks the store nothing.
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

// A Locker is a gocron.Locker: a job runs where its lock was to be had. Use
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
// be right; what is wrong with a job's name is told by Lock.
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

// Lock implements gocron.Locker. It waits for nobody: an error means that this
// scheduler skips the tick. It matches [lock.ErrHeld] if another one runs the
// job, and [lock.ErrUnavailable] if the store gave no clear answer; gocron shows
// it to a job's AfterLockError listener.
//
// The lock is freed when the job is done, also after a shutdown of the scheduler
// has ended ctx; a loss in between is told by Unlock, and to the logger.
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
