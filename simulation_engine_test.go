package election_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/kv"
)

// engines make each node's engine for a schedule.
type engines func(s sim.Schedule) func(*sim.Node) sim.Engine

// real is the engine that this package is about.
func real(s sim.Schedule) func(*sim.Node) sim.Engine {
	return seeing(func(n *sim.Node) kv.Store { return n.Store })(s)
}

// seeing is the real engine on a view of the store, which may have a bug.
func seeing(view func(n *sim.Node) kv.Store) engines {
	return func(s sim.Schedule) func(*sim.Node) sim.Engine {
		return func(n *sim.Node) sim.Engine { return run(n, view(n), s.TTL, s.Margin) }
	}
}

// run returns an engine that campaigns in the node's style, or asks what somebody
// outside asks for.
func run(n *sim.Node, store kv.Store, ttl, margin time.Duration, change ...func(*election.Options)) sim.Engine {
	if n.Errand != nil {
		return errand(n, store)
	}
	c, err := candidateOn(n, store, ttl, margin, change...)
	if err != nil {
		return func(context.Context) error { return err }
	}
	switch n.Plan.Style {
	case sim.ByCallbacks:
		return func(ctx context.Context) error { return notify(ctx, c, n) }
	case sim.ByCampaign:
		return func(ctx context.Context) error { return campaign(ctx, c, n) }
	case sim.ByRun:
	}
	return func(ctx context.Context) error {
		return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
			return n.Lead(ctx, &simTerm{Term: term, node: n})
		})
	}
}

// errand returns an engine that asks something of the leader.
func errand(n *sim.Node, store kv.Store) sim.Engine {
	return func(ctx context.Context) error {
		since := n.Now()
		n.Reply(since, resultOf(askFor(ctx, n, store)))
		return nil
	}
}

// askFor asks, and waits no longer than it may take a leader's work to stop.
func askFor(ctx context.Context, n *sim.Node, store kv.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 8*n.Schedule().TTL)
	defer cancel()
	if n.Errand.Verb == sim.AskResign {
		return election.RequestResign(ctx, store, "sim")
	}
	return election.RequestTransfer(ctx, store, "sim", n.Errand.IDs[0])
}

// resultOf returns what has become of what was asked for.
func resultOf(err error) string {
	switch {
	case errors.Is(err, election.ErrNoHeir):
		return history.NoHeir
	case errors.Is(err, election.ErrNoLeader):
		return history.Vacant
	case errors.Is(err, election.ErrHeld):
		return history.Held
	}
	return history.ResultOf(err)
}

// candidateOn returns a candidate that lives on a node: it reads that one's
// clocks, and draws its jitter from the schedule's seed.
func candidateOn(n *sim.Node, store kv.Store, ttl, margin time.Duration, change ...func(*election.Options)) (*election.Candidate, error) {
	opts := &election.Options{ID: n.Name, TTL: ttl, Margin: margin, Health: n.Healthy}
	if n.Heeds() {
		opts.Succession = orders[string(n.Schedule().Order)]
		opts.Stability, opts.MaxTerm = n.Schedule().Stability, n.Schedule().MaxTerm
		opts.Rank, opts.Heirs = n.Plan.Rank, n.Plan.Heirs
	}
	opts.NoHeir = opts.Succession == nil
	for _, do := range change {
		do(opts)
	}
	c, err := election.New(store, "sim", opts)
	if err != nil {
		return nil, err
	}
	c.SetClock(n.Read)
	c.SetJitter(n.Jitter)
	return c, nil
}

// notify leads in two callbacks, until ctx ends.
func notify(ctx context.Context, c *election.Candidate, n *sim.Node) error {
	var leading *simTerm
	return c.Notify(ctx, election.Callbacks{
		OnElected: func(ctx context.Context, term *election.Term) {
			leading = &simTerm{Term: term, node: n}
			n.Begin(leading)
			n.Work(ctx, leading)
			if ctx.Err() == nil {
				leading.Quit()
			}
		},
		OnDefeated: func(cause error) { n.Finish(leading, cause) },
	})
}

// campaign leads one term by hand, and gives it up when the work has stopped.
func campaign(ctx context.Context, c *election.Candidate, n *sim.Node) error {
	term, err := c.Campaign(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(term.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	leading := &simTerm{Term: term, node: n}
	err = n.Lead(asking{working, term.Context()}, leading)
	n.HandOver(ctx, leading)
	for {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.Plan.Lag+time.Second)
		resigned := term.Resign(bounded)
		cancel()
		if resigned == nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

// asking is a context that ends with another as well, and asks that one's clock:
// a context that is derived from a term's does not.
type asking struct {
	context.Context
	term context.Context
}

func (c asking) Err() error { return cmp.Or(c.term.Err(), c.Context.Err()) }

// A simTerm is a term of the engine, in the true time of its world.
type simTerm struct {
	*election.Term
	node *sim.Node
}

func (t *simTerm) Trusted() time.Duration {
	sent, span := t.Trust()
	clock := t.node.Clock()
	return clock.After(clock.When(sent), span)
}

func (t *simTerm) GaveUp() bool { return errors.Is(t.Err(), election.ErrResigned) }

func (t *simTerm) Transfer(ctx context.Context, id string) error {
	err := t.Term.Transfer(ctx, id)
	if errors.Is(err, election.ErrNoHeir) {
		return fmt.Errorf("%w: %w", sim.ErrNoHeir, err)
	}
	return err
}

func (t *simTerm) Quit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.Resign(ctx)
}
