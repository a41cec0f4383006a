package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// pace is how often a leader does a step of its work.
const pace = 20 * time.Millisecond

// A Candidate is one of the three.
type Candidate struct {
	Store kv.Store
	Name  string // of the election
	Part  Part
	Out   io.Writer // gets one event a line, before it is acted on
}

// Run campaigns and leads until ctx ends.
func (c *Candidate) Run(ctx context.Context) error {
	r := &recorder{out: json.NewEncoder(c.Out), who: c.Part.ID}
	options := c.Part.options()
	if options.Succession != nil {
		options.OnRole = r.become
	}
	candidate, err := election.New(c.Store, c.Name, options)
	if err != nil {
		return err
	}
	r.write(history.Event{Kind: history.Ready, At: boottime.Now()})
	err = candidate.Run(ctx, r.lead)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return r.failed()
	}
	return errors.Join(err, r.failed())
}

// A recorder writes down what its candidate believes.
type recorder struct {
	who string

	mu  sync.Mutex
	out *json.Encoder
	err error // the first, of writing
}

// write returns once the event is out of this process's hands.
func (r *recorder) write(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Who = r.who
	if err := r.out.Encode(e); err != nil && r.err == nil {
		r.err = fmt.Errorf("demo: write down an event: %w", err)
	}
}

func (r *recorder) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// become writes down another role.
func (r *recorder) become(role election.Role) {
	r.write(history.Event{Kind: history.Became, At: boottime.Now(), Value: string(role)})
}

// lead works in small steps, and asks before each of them whether it may.
func (r *recorder) lead(ctx context.Context, term *election.Term) error {
	clock := boottime.NewConverter()
	until := term.Until()
	r.write(history.Event{Kind: history.Elected, At: boottime.Now(), Token: term.Token(), Until: clock.Convert(until)})
	step := time.NewTicker(pace)
	defer step.Stop()
	for {
		if u := term.Until(); !u.Equal(until) {
			until = u
			r.write(history.Event{Kind: history.Extended, At: boottime.Now(), Token: term.Token(), Until: clock.Convert(until)})
		}
		asked := boottime.Now()
		if ctx.Err() != nil {
			r.write(history.Event{Kind: history.Ended, At: boottime.Now(), Token: term.Token(), Text: context.Cause(ctx).Error()})
			return nil
		}
		r.write(history.Event{Kind: history.Worked, At: asked, Token: term.Token()})
		select {
		case <-ctx.Done():
		case <-step.C:
		}
	}
}
