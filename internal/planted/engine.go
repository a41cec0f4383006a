package planted

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/kv"
)

// Bugs in the use of the engine, and a separate engine for what the real one
// cannot be made to do.

// guarded is the real engine with another margin, as a part of the TTL; zero
// means the least that New takes.
func guarded(part float64) simulation.Engine {
	return func(n *simulation.Node) sim.Engine {
		ttl := float64(n.Schedule().TTL)
		margin := time.Duration(part * ttl)
		if part == 0 {
			margin = time.Duration(ttl*0.02/1.01 + float64(51*time.Millisecond)).Truncate(time.Millisecond)
		}
		return n.Run(n.Store, margin)
	}
}

// leading is the real engine with another way to lead.
func leading(lead func(context.Context, *simulation.Node, *election.Candidate) error, change ...func(*election.Options)) simulation.Engine {
	return func(n *simulation.Node) sim.Engine {
		if n.Errand != nil {
			return n.RunErrand(n.Store)
		}
		return func(ctx context.Context) error {
			c, err := n.Candidate(n.Store, n.Schedule().Margin, change...)
			if err != nil {
				return err
			}
			return lead(ctx, n, c)
		}
	}
}

// stopNotTold calls one callback at the beginning of each term, and another at
// its end unless it was told to leave.
var stopNotTold = leading(func(ctx context.Context, n *simulation.Node, c *election.Candidate) error {
	return c.Run(ctx, func(working context.Context, term *election.Term) error {
		t := n.Term(term)
		n.Begin(t)
		n.Work(working, t)
		if ctx.Err() == nil {
			n.Finish(t, context.Cause(working))
		}
		return nil
	})
})

// toldLate works until a message tells it that the term is over, and never checks the clock.
var toldLate = leading(func(ctx context.Context, n *simulation.Node, c *election.Candidate) error {
	return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
		t := n.Term(term)
		told, tell := context.WithCancel(context.WithoutCancel(ctx))
		defer tell()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(2*time.Second, tell) })()
		n.Begin(t)
		n.Work(told, gullible{t})
		n.Finish(t, context.Cause(ctx))
		return nil
	})
})

type gullible struct{ sim.Term }

// Err implements [sim.Term].
func (gullible) Err() error { return nil }

// carefree has no health check.
var carefree = leading(func(ctx context.Context, n *simulation.Node, c *election.Candidate) error {
	return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
		return n.Lead(ctx, n.Term(term))
	})
}, func(o *election.Options) { o.Health = nil })

// freedEarly resigns and then stops its work.
var freedEarly = leading(func(ctx context.Context, n *simulation.Node, c *election.Candidate) error {
	term, err := c.Campaign(ctx)
	if err != nil {
		return err
	}
	t := n.Term(term)
	n.Begin(t)
	n.Work(ctx, t)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err = term.Resign(bounded)
	n.Finish(t, err)
	return err
})

// naive is a small engine of its own: it asks for the safe again and again, and
// counts its trust as it should. If it revives, it takes every success for an
// extension, also of a term that has run out.
func naive(revives bool) simulation.Engine {
	return func(n *simulation.Node) sim.Engine {
		if n.Errand != nil {
			return n.RunErrand(n.Store)
		}
		return func(ctx context.Context) error {
			ttl := n.Schedule().TTL
			e := &naiveEngine{node: n, ttl: ttl, margin: ttl / 10, revives: revives}
			return e.run(ctx)
		}
	}
}

type naiveEngine struct {
	node        *simulation.Node
	ttl, margin time.Duration
	revives     bool
}

func (e *naiveEngine) run(ctx context.Context) error {
	for ctx.Err() == nil {
		sent := e.node.Now()
		var rec kv.Record
		err := e.try(ctx, func(ctx context.Context) (err error) {
			rec, err = e.node.Store.Create(ctx, "sim", kv.Record{Signature: e.node.Name + time.Now().String(), TTL: e.ttl})
			return err
		})
		t := &naiveTerm{engine: e, rec: rec, deadline: e.trust(sent, rec)}
		if err == nil && t.Err() == nil {
			return t.serve(ctx)
		}
		time.Sleep(e.ttl / 10)
	}
	return ctx.Err()
}

// try gives a request a third of the TTL.
func (e *naiveEngine) try(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.ttl/3)
	defer cancel()
	return do(ctx)
}

// trust returns until which true time a request that was sent is trusted.
func (e *naiveEngine) trust(sent time.Duration, rec kv.Record) time.Duration {
	return e.node.Clock().After(sent, rec.TTL-e.margin)
}

type naiveTerm struct {
	engine *naiveEngine
	rec    kv.Record

	mu       sync.Mutex
	deadline time.Duration
	over     bool
}

var errNaive = errors.New("naive: the term is over")

// Token implements [sim.Term].
func (t *naiveTerm) Token() uint64 { return t.rec.Token }

// Trusted implements [sim.Term].
func (t *naiveTerm) Trusted() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline
}

// Err implements [sim.Term].
func (t *naiveTerm) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.engine.node.Now() >= t.deadline {
		return errNaive
	}
	return nil
}

// Proclaim implements [sim.Term].
func (t *naiveTerm) Proclaim(context.Context, string) error { return nil }

// Quit implements [sim.Term].
func (t *naiveTerm) Quit() {}

// GaveUp implements [sim.Term].
func (t *naiveTerm) GaveUp() bool { return false }

// Transfer implements [sim.Term].
func (t *naiveTerm) Transfer(context.Context, string) error { return errNaive }

// SetHeirs implements [sim.Term].
func (t *naiveTerm) SetHeirs(context.Context, ...string) error { return errNaive }

// serve leads and then frees the safe.
func (t *naiveTerm) serve(ctx context.Context) error {
	e := t.engine
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var kept sync.WaitGroup
	kept.Go(func() { t.keep(keeping) })
	err := e.node.Lead(ctx, t)
	stop()
	kept.Wait()
	for range 10 {
		deleted := e.try(context.WithoutCancel(ctx), func(ctx context.Context) error { return e.node.Store.Delete(ctx, "sim", t.rec) })
		if deleted == nil || errors.Is(deleted, kv.ErrStale) {
			break
		}
	}
	return err
}

// keep refreshes the record until ctx ends.
func (t *naiveTerm) keep(ctx context.Context) {
	e := t.engine
	for ctx.Err() == nil {
		pause := time.NewTimer(e.ttl / 4)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		sent := e.node.Now()
		err := e.try(ctx, func(ctx context.Context) error {
			_, err := e.node.Store.Refresh(ctx, "sim", t.rec)
			return err
		})
		t.mu.Lock()
		alive := e.node.Now() < t.deadline
		switch {
		case err == nil && (alive || e.revives):
			t.deadline = e.trust(sent, t.rec)
		case errors.Is(err, kv.ErrStale), !alive && !e.revives:
			t.over = true
		}
		t.mu.Unlock()
	}
}
