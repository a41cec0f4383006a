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
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/trace"
	"github.com/electkv/election/kv"
)

// pace is how often a leader does a step of its work.
const pace = 20 * time.Millisecond

// A candidate stands in the election, and writes down what it believes before
// it acts on it.
type candidate struct {
	*process
	who   string
	fence *pen

	mu    sync.Mutex
	term  *election.Term // while it leads
	until time.Time      // as written down last
	clock *boottime.Converter
}

func (p *process) candidate(who string) *candidate { return &candidate{process: p, who: who} }

func (c *candidate) note(e history.Event) {
	e.Who = c.who
	c.process.note(e)
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
	store := kv.Store(confessor{history.ObserveOnly(c.freezer, c.Name, c.note), c})
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
	candidate, err := election.New(store, c.Name, &election.Options{ID: c.who, TTL: c.TTL, NoHeir: c.NoHeir, Logger: c.log})
	if err != nil {
		return err
	}
	c.note(history.Event{Kind: history.Ready})
	campaign := machine.WithTracer(ctx, trace.Tracer(c.note))
	for err == nil {
		err = candidate.Run(campaign, c.lead)
	}
	if errors.Is(err, errQuit) {
		c.note(history.Event{Kind: gaveUp})
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
	until := term.Until() // a refresh may follow at once, and is another event
	asked := boottime.Now()
	if ctx.Err() != nil {
		return nil // it came too late to begin
	}
	select {
	case <-c.orders: // it was for the term before
	default:
	}
	c.begin(term, until, asked)
	c.note(history.Event{Kind: history.Started, Token: term.Token()})
	cause := "the work panicked"
	defer func() {
		c.forget()
		c.note(history.Event{Kind: history.Ended, Token: term.Token(), Text: cause})
		c.note(history.Event{Kind: history.Finished, Token: term.Token()})
	}()
	over := c.turn()
	defer over.Stop()
	step, news := time.NewTicker(pace), time.NewTicker(c.TTL/4)
	defer step.Stop()
	defer news.Stop()
	for {
		asked := boottime.Now()
		if ctx.Err() != nil {
			cause = context.Cause(ctx).Error()
			return nil
		}
		c.confess()
		c.note(history.Event{Kind: history.Worked, At: asked, Token: term.Token()})
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
			cause = "its turn is over"
			return nil
		case order := <-c.orders:
			if order == "panic" {
				panic("told to panic")
			}
			if err := term.Resign(ctx); err != nil {
				return fmt.Errorf("resign: %w", err)
			}
		}
	}
}

// begin writes down that it was elected.
func (c *candidate) begin(term *election.Term, until time.Time, asked time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term, c.until, c.clock = term, until, boottime.NewConverter()
	c.note(history.Event{Kind: history.Elected, At: asked, Token: term.Token(), Until: c.clock.Convert(c.until)})
}

// confess writes down until when the lease is trusted, if that has changed.
func (c *candidate) confess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == nil {
		return
	}
	if until := c.term.Until(); !until.Equal(c.until) {
		c.until = until
		c.note(history.Event{Kind: history.Extended, Token: c.term.Token(), Until: c.clock.Convert(until)})
	}
}

// forget ends what there is to confess.
func (c *candidate) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term = nil
}

// A confessor is a store that sees to it that every extension is written down:
// it comes of a refresh, and is there before the next one is sent.
type confessor struct {
	kv.Queue
	c *candidate
}

func (s confessor) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.c.confess()
	return s.Queue.Refresh(ctx, name, rec)
}

// RefreshAll implements [kv.Batch], as what it confesses for does.
func (s confessor) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	s.c.confess()
	s.Queue.(kv.Batch).RefreshAll(ctx, records, tell)
}

// HandOver implements [kv.HandOver], as what it confesses for does.
func (s confessor) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	return s.Queue.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
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
