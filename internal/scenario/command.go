package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv/kvfault"
)

func (w *world) enter(a args) error {
	opts := election.Options{Rank: a.rank, Heirs: a.ids, MaxTerm: a.max}
	return w.start(a.id, slices.Index(w.script.cast, a.id), opts, a.drains)
}

func (w *world) advance(a args) error {
	time.Sleep(a.d)
	return nil
}

// until waits until a candidate leads, or for d at most.
func (w *world) until(a args) error {
	p, err := w.process(a.id)
	if err != nil {
		return err
	}
	for give := time.Now().Add(a.d); time.Now().Before(give); time.Sleep(100 * time.Millisecond) {
		if _, err = p.leads(); err == nil {
			return nil
		}
	}
	return err
}

// kill ends a process at once: its work is gone, and nothing that it says arrives
// any more.
func (w *world) kill(a args) error {
	p, err := w.process(a.id)
	if err != nil {
		return err
	}
	p.mute()
	p.set(dead, true)
	p.goOn()
	p.wire()
	p.cancel()
	return nil
}

// stop tells a process to end, and waits until it has.
func (w *world) stop(a args) error {
	p, err := w.process(a.id)
	if err != nil {
		return err
	}
	if p.is(paused) {
		return fmt.Errorf("%s is paused, and hears nothing: let it continue, or kill it", a.id)
	}
	p.cancel()
	<-p.done
	p.set(dead, true)
	return nil
}

func (w *world) restart(a args) error {
	w.mu.Lock()
	old := w.cast[a.id]
	w.mu.Unlock()
	if !old.is(dead) {
		return fmt.Errorf("%s runs: kill or stop it first", a.id)
	}
	return w.start(old.id, old.place, old.opts, old.drains)
}

func (w *world) cut(a args) error {
	return w.with(a, func(p *process) { p.reach(false) })
}

func (w *world) heal(a args) error {
	return w.with(a, func(p *process) { p.reach(true) })
}

func (w *world) pause(a args) error { return w.with(a, (*process).pause) }

func (w *world) goOn(a args) error { return w.with(a, (*process).goOn) }

func (w *world) sicken(a args) error {
	return w.with(a, func(p *process) { p.set(ill, true) })
}

func (w *world) recover(a args) error {
	return w.with(a, func(p *process) { p.set(ill, false) })
}

// with does something to a process.
func (w *world) with(a args, do func(*process)) error {
	p, err := w.process(a.id)
	if err == nil {
		do(p)
	}
	return err
}

func (w *world) resign(a args) error {
	return w.asLeader(a, "resigned", func(ctx context.Context, term *election.Term) error { return term.Resign(ctx) })
}

func (w *world) transfer(a args) error {
	return w.asLeader(a, "transferred to "+a.to, func(ctx context.Context, term *election.Term) error { return term.Transfer(ctx, a.to) })
}

func (w *world) setHeirs(a args) error {
	return w.asLeader(a, "published its heirs", func(ctx context.Context, term *election.Term) error { return term.SetHeirs(ctx, a.ids...) })
}

// asLeader has a leader do something with its term, and tells what comes of it.
func (w *world) asLeader(a args, done string, do func(context.Context, *election.Term) error) error {
	p, err := w.process(a.id)
	if err != nil {
		return err
	}
	term, err := p.leads()
	if err != nil {
		return err
	}
	w.ask(a.id, done, func(ctx context.Context) error { return do(ctx, term) })
	return nil
}

// request sends a request to the leader from outside the election.
func (w *world) request(a args) error {
	view := kvfault.Wrap(w.store)
	view.On().DelayRequests(5 * time.Millisecond)
	view.On().DelayReplies(5 * time.Millisecond)
	if a.to == "" {
		w.ask("the asker", "was heard", func(ctx context.Context) error { return election.RequestResign(ctx, view.Store, scene) })
	} else {
		w.ask("the asker", "was heard", func(ctx context.Context) error { return election.RequestTransfer(ctx, view.Store, scene, a.to) })
	}
	return nil
}

// ask does what takes time, while the script goes on.
func (w *world) ask(who, done string, do func(context.Context) error) {
	w.asking.Go(func() {
		err := do(w.ctx)
		switch {
		case w.ctx.Err() != nil:
		case err == nil:
			w.trace.add(turnAnswer, "%s %s", who, done)
		case errors.Is(err, election.ErrNoHeir):
			w.trace.add(turnAnswer, "%s was refused: %s", who, spoken(err))
		default:
			w.trace.add(turnAnswer, "%s is told: %s", who, spoken(err))
		}
	})
}
