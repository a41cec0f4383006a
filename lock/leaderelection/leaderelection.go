// Package leaderelection offers elections in the style of
// k8s.io/client-go/tools/leaderelection, for programs that are written for that
// and move to a store of this library. It imports nothing of Kubernetes.
//
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
//		Store:         store, // in place of Lock
//		Name:          "billing",
//		Identity:      id,
//		LeaseDuration: 15 * time.Second,
//		RenewDeadline: 10 * time.Second,
//		RetryPeriod:   2 * time.Second,
//		Callbacks: leaderelection.LeaderCallbacks{
//			OnStartedLeading: run,
//			OnStoppedLeading: func() { log.Print("leader lost") },
//		},
//	})
//
// [LeaderElectionConfig] says what becomes of each field. Two are missing, so
// that the compiler asks for a decision: Lock is Store, Name and Identity here,
// and WatchDog is [LeaderElector.IsLeader], asked by a health check of one's own.
//
// # What is stricter here
//
//   - OnStoppedLeading is called once for each OnStartedLeading, after that has
//     returned and its context has ended, and never without one. client-go calls it
//     while the work still runs, and also when nobody ever led.
//   - The lease is given up when OnStoppedLeading has returned, and kept until
//     then. So others lead after the work has stopped, at a shutdown too.
//   - OnStartedLeading's context ends before the store can let another lead, by a
//     timer that no call to the store holds up. LeaseDuration is what the store
//     keeps; clocks of different hosts are never compared.
//   - Run starts no goroutine that outlives it.
//
// # What to change for that
//
// Work that does not heed its context keeps OnStartedLeading, and with it
// OnStoppedLeading and Run, from ever coming to an end after a loss. A program
// that relies on an os.Exit in OnStoppedLeading to end such work puts it where
// the loss is told, at the start of OnStartedLeading:
//
//	context.AfterFunc(ctx, func() {
//		if errors.Is(context.Cause(ctx), election.ErrLost) {
//			os.Exit(1)
//		}
//	})
//
// An os.Exit in OnStoppedLeading leaves the lease to fade; return from it
// instead, and exit when Run has returned.
//
// Programs that are free to choose use election.Candidate.Run.
package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// A LeaderElectionConfig says how to campaign and lead.
type LeaderElectionConfig struct { //nolint:revive // client-go's name
	// Store and Name say where the lease is. They take the place of Lock.
	Store kv.Store
	Name  string

	// Identity is what client-go asks Lock for: it names the candidate to others.
	// Default: host name and process id.
	Identity string

	// LeaseDuration is the TTL: how long a leader that vanished keeps others out.
	// Default: 15 s.
	LeaseDuration time.Duration

	// RenewDeadline is how long after its last good renewal, counted from when
	// that was sent, a leader stops leading. LeaseDuration − RenewDeadline is the
	// election's margin, which pays for clocks that differ and for the work's time
	// to stop; New refuses one that is too small. Renewals are sent every third of
	// it. Default: as election.Options.Margin has it.
	RenewDeadline time.Duration

	// RetryPeriod is how long to wait before watching anew for OnNewLeader, when
	// the store was in trouble. Nothing else waits for it: candidates are told by
	// the store when the lease is free. Default: 2 s.
	RetryPeriod time.Duration

	// ReleaseOnCancel may be set or not. The lease is always released, and never
	// before the work has stopped, which is what it was a choice between.
	ReleaseOnCancel bool

	// Callbacks start and stop the work.
	Callbacks LeaderCallbacks

	// Logger gets one record for each change of state. Default: silence.
	Logger *slog.Logger
}

// LeaderCallbacks are called back by Run.
type LeaderCallbacks struct {
	// OnStartedLeading is called when the candidate begins to lead, on Run's
	// goroutine. It does the work until ctx ends; or it starts it and returns, and
	// OnStoppedLeading stops it. Must not be nil.
	OnStartedLeading func(ctx context.Context)

	// OnStoppedLeading is called after OnStartedLeading has returned and its
	// context has ended. It returns when the work has stopped. Must not be nil.
	OnStoppedLeading func()

	// OnNewLeader, if not nil, is called when another identity leads than the one
	// that did before, this candidate's own included: in turn, on a goroutine
	// that Run waits for. Of a holder that is not of this library it gets the
	// value.
	OnNewLeader func(identity string)
}

// A LeaderElector campaigns and leads as its config says. Use [New] to make one.
type LeaderElector struct {
	config    LeaderElectionConfig
	candidate *election.Candidate
	term      atomic.Pointer[election.Term]
	leader    atomic.Pointer[string]
}

// New checks the config. The error says what is wrong with it, and what would be
// right.
func New(lec LeaderElectionConfig) (*LeaderElector, error) {
	switch {
	case lec.Callbacks.OnStartedLeading == nil:
		return nil, errors.New("leaderelection: OnStartedLeading is nil: it is what does the work")
	case lec.Callbacks.OnStoppedLeading == nil:
		return nil, errors.New("leaderelection: OnStoppedLeading is nil: give it a function, an empty one if OnStartedLeading returns when the work has stopped")
	case lec.LeaseDuration < 0, lec.RenewDeadline < 0, lec.RetryPeriod < 0:
		return nil, fmt.Errorf("leaderelection: LeaseDuration %v, RenewDeadline %v, RetryPeriod %v: none may be negative; 0 is the default", lec.LeaseDuration, lec.RenewDeadline, lec.RetryPeriod)
	}
	if lec.LeaseDuration == 0 {
		lec.LeaseDuration = 15 * time.Second
	}
	if lec.RetryPeriod == 0 {
		lec.RetryPeriod = 2 * time.Second
	}
	var margin time.Duration
	if lec.RenewDeadline > 0 {
		margin = lec.LeaseDuration - lec.RenewDeadline
		if margin <= 0 {
			return nil, fmt.Errorf("leaderelection: RenewDeadline %v is not less than LeaseDuration %v", lec.RenewDeadline, lec.LeaseDuration)
		}
	}
	candidate, err := election.New(lec.Store, lec.Name, &election.Options{
		ID: lec.Identity, TTL: lec.LeaseDuration, Margin: margin, Logger: lec.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("leaderelection: %w (the TTL is LeaseDuration, the margin LeaseDuration − RenewDeadline)", err)
	}
	return &LeaderElector{config: lec, candidate: candidate}, nil
}

// RunOrDie makes a LeaderElector and runs it. It panics if the config is wrong.
func RunOrDie(ctx context.Context, lec LeaderElectionConfig) {
	le, err := New(lec)
	if err == nil {
		if err = le.Run(ctx); !errors.Is(err, kv.ErrInvalid) {
			return
		}
	}
	panic(err)
}

// Run campaigns, leads once, and returns when that is over: when ctx has ended,
// or the lead is lost, and the work has stopped. To campaign again, call it
// again, but not twice at once.
//
// What it returns may be ignored, as there is nothing to ignore in client-go:
// the cause of ctx, election.ErrLost with the reason, or kv.ErrInvalid if the
// store can never do what is asked.
func (le *LeaderElector) Run(ctx context.Context) error {
	var observing sync.WaitGroup
	defer observing.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	observing.Go(func() { le.observe(ctx) })
	return le.candidate.Notify(ctx, election.Callbacks{
		OnElected: func(ctx context.Context, term *election.Term) {
			le.term.Store(term)
			le.config.Callbacks.OnStartedLeading(ctx)
		},
		OnDefeated: func(cause error) {
			le.config.Callbacks.OnStoppedLeading()
			stop(cause)
		},
	})
}

// IsLeader reports whether this candidate leads at this moment, by the clock.
func (le *LeaderElector) IsLeader() bool {
	term := le.term.Load()
	return term != nil && term.Err() == nil
}

// GetLeader returns the identity of the leader as Run last saw it, "" if there
// was none. It may be out of date.
func (le *LeaderElector) GetLeader() string {
	if leader := le.leader.Load(); leader != nil {
		return *leader
	}
	return ""
}

// observe watches who leads until ctx ends.
func (le *LeaderElector) observe(ctx context.Context) {
	var reported string
	for leader, err := range election.Watch(ctx, le.config.Store, le.config.Name) {
		if err != nil && !errors.Is(err, election.ErrNoLeader) {
			continue // the store is in trouble, which the candidate reports
		}
		identity := leader.ID
		if leader.Foreign {
			identity = leader.Value
		}
		le.leader.Store(&identity)
		if err == nil && identity != reported {
			reported = identity
			if le.config.Callbacks.OnNewLeader != nil {
				le.config.Callbacks.OnNewLeader(identity)
			}
		}
	}
}
