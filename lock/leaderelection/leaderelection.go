// Package leaderelection offers elections in the style of
// k8s.io/client-go/tools/leaderelection, for programs that are written for that package
// and move to a store of this library. It imports nothing from Kubernetes.
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
// [LeaderElectionConfig] says what each field means here. Two are missing, so
// that the compiler asks for a decision: Store, Name and Identity replace Lock,
// and for WatchDog, call [LeaderElector.IsLeader] in a health check of your own.
//
// # What is stricter here
//
//   - OnStoppedLeading is called once for each OnStartedLeading, after that has
//     returned and its context has ended, and never without one. client-go calls it
//     while the work still runs, and also if the candidate never led.
//   - The lease is kept until OnStoppedLeading has returned, and then given up.
//     So others lead after the work has stopped, at a shutdown too.
//   - OnStartedLeading's context ends before the store can let another lead, by a
//     timer that no call to the store can delay. The store keeps LeaseDuration;
//     clocks of different hosts are never compared.
//   - Run starts no goroutine that outlives it.
//
// # What to change for that
//
// If the work ignores its context, OnStartedLeading never returns after a loss, and so
// neither do OnStoppedLeading and Run. A program that relies on an os.Exit in
// OnStoppedLeading to end such work must move it to the start of OnStartedLeading:
//
//	context.AfterFunc(ctx, func() {
//		if errors.Is(context.Cause(ctx), election.ErrLost) {
//			os.Exit(1)
//		}
//	})
//
// After an os.Exit in OnStoppedLeading, others wait until the lease expires. Return from
// it instead, and exit when Run has returned.
//
// New programs should use election.Candidate.Run.
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

	// Identity names the candidate to others. In client-go it is part of Lock.
	// Default: host name and process id.
	Identity string

	// LeaseDuration is the TTL: how long a leader that vanished keeps others out.
	// Default: 15 s.
	LeaseDuration time.Duration

	// RenewDeadline is how long after its last successful renewal, counted from when
	// that was sent, a leader stops leading. LeaseDuration − RenewDeadline is the
	// election's margin, which allows for clocks that differ and for the time that the
	// work takes to stop; New refuses a margin that is too small. Renewals are sent three
	// times per RenewDeadline. Default: LeaseDuration less the default of
	// election.Options.Margin.
	RenewDeadline time.Duration

	// RetryPeriod has no effect: the store tells candidates when the lease is free, and after
	// trouble with the store they try again sooner than client-go would.
	RetryPeriod time.Duration

	// ReleaseOnCancel has no effect. In client-go it is a choice between keeping the lease
	// and releasing it while the work runs. Here the lease is always released, and never
	// before the work has stopped.
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

	// OnNewLeader, if not nil, is called when an identity leads that did not lead
	// before, this candidate's own included. The calls come one after the other, on a
	// goroutine that Run waits for. For a holder that does not use this library it gets
	// the holder's value.
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
// It returns the cause of ctx, election.ErrLost with the reason, or kv.ErrInvalid if the
// store can never do what is asked. You may ignore that: in client-go, Run returns
// nothing.
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
