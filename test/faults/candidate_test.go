//go:build linux

package faults

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/trace"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/internal/witness"
)

// pace is how often a leader does a step of its work.
const pace = 20 * time.Millisecond

// A candidate stands in the election, and writes down what it believes before
// it acts on it.
type candidate struct {
	*process
	*witness.Witness
	who   string
	fence *pen
}

func (p *process) candidate(who string) *candidate {
	return &candidate{process: p, Witness: witness.New(who, p.tell), who: who}
}

// run campaigns and leads until ctx ends. It returns nil if that was because the
// candidate was told to close.
func (c *candidate) run(ctx context.Context) error {
	pen, err := newPen(c.Fence, c.who)
	if err != nil {
		return err
	}
	defer pen.close()
	c.fence = pen
	// What the engine sees, it is made to answer for: the faults are between the
	// record of its requests and the store. A planted bug is the engine's.
	store := c.Observe(views.Over(c.faults.Store, c.freezer), c.Name)
	if c.Bug != "" {
		if store, err = plant(c.Bug, store); err != nil {
			return err
		}
	}
	if c.who == c.Who[0] {
		if err := c.near.begin(ctx, c.process, store); err != nil {
			return err
		}
		defer c.near.all.Wait()
		ctx = c.stand
	}
	window := c.web.window()
	candidate, err := election.New(store, c.Name, &election.Options{ID: c.who, TTL: c.TTL, NoHeir: c.NoHeir, Logger: c.log, Hooks: window.hooks()})
	if err != nil {
		return err
	}
	if err := window.open(c.who, candidate, store); err != nil {
		return err
	}
	c.Note(history.Event{Kind: history.Ready})
	campaign := machine.WithTracer(ctx, trace.Tracer(c.Note))
	for err == nil {
		err = candidate.Run(campaign, c.lead)
	}
	if errors.Is(err, errQuit) {
		c.Note(history.Event{Kind: gaveUp})
		return nil
	}
	if !errors.Is(err, errClosed) {
		return err
	}
	return nil
}

// lead works in small steps, and asks before each of them whether it may. A few
// times per TTL it proclaims something, so that refreshes have swaps beside them.
func (c *candidate) lead(ctx context.Context, term *election.Term) error {
	select {
	case <-c.orders: // it was for the term before
	default:
	}
	if !c.Begin(ctx, term) {
		return nil
	}
	c.Note(history.Event{Kind: history.Started, Token: term.Token()})
	cause, reason, resigned := "the work panicked", election.Reason(""), false
	defer func() {
		c.EndFor(cause, reason)
		c.Note(history.Event{Kind: history.Finished, Token: term.Token()})
	}()
	over := c.turn()
	defer over.Stop()
	step, news := time.NewTicker(pace), time.NewTicker(c.TTL/4)
	defer step.Stop()
	defer news.Stop()
	for {
		if !c.MayWork(ctx) {
			err := context.Cause(ctx)
			cause, reason = err.Error(), reasonOf(err, resigned)
			return nil
		}
		if c.frozen.CompareAndSwap(true, false) {
			c.sleep("before it writes")
		}
		if err := c.fence.write(term.Token()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-step.C:
		case <-news.C:
			if c.Quiet {
				continue
			}
			// Whether that succeeds is no promise. If the term is over, ctx will tell.
			_ = term.Proclaim(ctx, rand.Text())
		case <-over.C:
			cause, reason = "its turn is over", election.ReasonFinished
			return nil
		case order := <-c.orders:
			if order == "panic" {
				panic("told to panic")
			}
			if err := term.Resign(ctx); err != nil {
				return fmt.Errorf("resign: %w", err)
			}
			resigned = true
		}
	}
}

// reasonOf returns why a term is over, or "" if its cause does not tell: others may have asked the
// leader to make room.
func reasonOf(cause error, resigned bool) election.Reason {
	switch {
	case errors.Is(cause, errClosed), errors.Is(cause, errQuit):
		return election.ReasonStopped
	case errors.Is(cause, election.ErrLost) && strings.Contains(cause.Error(), "not refreshed in time"):
		return election.ReasonExpired
	case errors.Is(cause, election.ErrLost):
		return election.ReasonTaken
	case resigned:
		return election.ReasonResigned
	}
	return ""
}

// turn returns a timer for the end of the candidate's turn.
func (c *candidate) turn() *time.Timer {
	if c.Turn == 0 {
		never := time.NewTimer(0)
		if !never.Stop() {
			<-never.C
		}
		return never
	}
	return time.NewTimer(c.Turn)
}

// These match a function of the engine, and of an adapter, in a stack.
var (
	ofEngine  = regexp.MustCompile(`github\.com/electkv/election\.`)
	ofAdapter = regexp.MustCompile(`github\.com/electkv/election/(kv|backends)/?[^./]*\.`)
)

// How long goroutines may go on when all is over: the engine's for a moment in
// which they end. An adapter may have had to leave a request behind that its
// client goes on with, until that one's own timeout: of 5 s in go-redis, which
// package rediskv says.
const (
	engineSettles  = time.Second
	adapterSettles = 6 * time.Second
)

// leftovers counts the goroutines that run the engine's or an adapter's code,
// and shows their stacks.
func leftovers() (n int, stacks string) {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		engine, adapter := running()
		late := time.Since(begin)
		switch {
		case len(engine)+len(adapter) == 0:
			return 0, ""
		case len(engine) > 0 && late > engineSettles, late > adapterSettles:
			all := append(engine, adapter...)
			return len(all), strings.Join(all, "\n\n")
		}
	}
}

// running returns the stacks of goroutines that run the engine's code, and of
// others that run an adapter's.
func running() (engine, adapter []string) {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2)
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		switch {
		case ofEngine.MatchString(stack):
			engine = append(engine, stack)
		case ofAdapter.MatchString(stack):
			adapter = append(adapter, stack)
		}
	}
	return engine, adapter
}
