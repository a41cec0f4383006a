//go:build unix

package demo

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// A troupe is the processes of a demo, and what they tell.
type troupe struct {
	events   chan history.Event
	cast     map[string]*witness.Process
	take     func(history.Event) // what is told
	patience time.Duration       // for what should follow
}

func newTroupe(take func(history.Event)) troupe {
	return troupe{events: make(chan history.Event), cast: map[string]*witness.Process{}, take: take}
}

// enter starts a process.
func (t *troupe) enter(who string, cmd *exec.Cmd) error {
	p, err := start(cmd, who, t.events)
	if err == nil {
		t.cast[who] = p
	}
	return err
}

// errSlow ends the play when what should happen does not.
var errSlow = errors.New("demo: what should follow did not happen in time")

// await takes what is told until cue is given.
func (t *troupe) await(ctx context.Context, cue func(history.Event) bool) error {
	late := time.NewTimer(t.patience)
	defer late.Stop()
	for {
		select {
		case e := <-t.events:
			t.take(e)
			if cue(e) {
				return nil
			}
		case <-late.C:
			return errSlow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// until takes what is told until something holds.
func (t *troupe) until(ctx context.Context, holds func() bool) error {
	if holds() {
		return nil
	}
	return t.await(ctx, func(history.Event) bool { return holds() })
}

// during takes what is told while something is done.
func (t *troupe) during(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.patience, errSlow)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case e := <-t.events:
			t.take(e)
		case err := <-done:
			return err
		}
	}
}

// pass lets time pass.
func (t *troupe) pass(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case e := <-t.events:
			t.take(e)
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
