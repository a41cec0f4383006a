package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/kv"
)

// An Engine makes what a node runs.
type Engine func(n *Node) sim.Engine

// A Node is a node of a simulated world, and what tests can do with the engine that
// lives on it.
type Node struct {
	*sim.Node
	seam seam.Engine
}

// Real is the engine that all this is about.
func Real(n *Node) sim.Engine { return n.Run(n.Store, n.Schedule().Margin) }

// Seeing is the real engine on a view of the store, which may have a bug.
func Seeing(view func(n *sim.Node) kv.Store) Engine {
	return func(n *Node) sim.Engine { return n.Run(view(n.Node), n.Schedule().Margin) }
}

// Run returns an engine that campaigns in the node's style, or that sends requests from
// outside.
func (n *Node) Run(store kv.Store, margin time.Duration, change ...func(*election.Options)) sim.Engine {
	if n.Errand != nil {
		return n.RunErrand(store)
	}
	c, err := n.Candidate(store, margin, change...)
	if err != nil {
		return func(context.Context) error { return err }
	}
	switch n.Plan.Style {
	case sim.ByCallbacks:
		return func(ctx context.Context) error { return n.notify(ctx, c) }
	case sim.ByCampaign:
		return func(ctx context.Context) error { return n.campaign(ctx, c) }
	case sim.ByRun:
	}
	return func(ctx context.Context) error {
		return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
			return n.Lead(ctx, n.Term(term))
		})
	}
}

// RunErrand returns an engine that asks something of the leader.
func (n *Node) RunErrand(store kv.Store) sim.Engine {
	return func(ctx context.Context) error {
		since := n.Now()
		n.Reply(since, resultOf(n.askFor(ctx, store)))
		return nil
	}
}

// askFor asks, and waits no longer than it may take a leader's work to stop.
func (n *Node) askFor(ctx context.Context, store kv.Store) error {
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

// Candidate returns a candidate that lives on the node: it reads that one's clocks,
// and draws its jitter from the schedule's seed.
func (n *Node) Candidate(store kv.Store, margin time.Duration, change ...func(*election.Options)) (*election.Candidate, error) {
	opts := &election.Options{ID: n.Name, TTL: n.Schedule().TTL, Margin: margin, Health: n.Healthy}
	if n.Heeds() {
		opts.Succession = seam.Orders()[string(n.Schedule().Order)]
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
	n.seam.SetClock(c, n.Read)
	n.seam.SetJitter(c, n.Jitter)
	return c, nil
}

// notify leads in two callbacks, until ctx ends.
func (n *Node) notify(ctx context.Context, c *election.Candidate) error {
	var leading *Term
	return c.Notify(ctx, election.Callbacks{
		OnElected: func(ctx context.Context, term *election.Term) {
			leading = n.Term(term)
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
func (n *Node) campaign(ctx context.Context, c *election.Candidate) error {
	term, err := c.Campaign(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(term.Context())
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	leading := n.Term(term)
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

// Err implements [context.Context].
func (c asking) Err() error { return cmp.Or(c.term.Err(), c.Context.Err()) }

// A Term is a term of the engine, in the true time of its world.
type Term struct {
	*election.Term
	node *Node
}

// Term returns a term that the node has.
func (n *Node) Term(term *election.Term) *Term { return &Term{Term: term, node: n} }

// Trusted implements [sim.Term].
func (t *Term) Trusted() time.Duration {
	sent, span := t.node.seam.Trust(t.Term)
	clock := t.node.Clock()
	return clock.After(clock.When(sent), span)
}

// GaveUp implements [sim.Term].
func (t *Term) GaveUp() bool { return errors.Is(t.Err(), election.ErrResigned) }

// Transfer implements [sim.Term].
func (t *Term) Transfer(ctx context.Context, id string) error {
	err := t.Term.Transfer(ctx, id)
	if errors.Is(err, election.ErrNoHeir) {
		return fmt.Errorf("%w: %w", sim.ErrNoHeir, err)
	}
	return err
}

// Quit implements [sim.Term].
func (t *Term) Quit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.Resign(ctx)
}
