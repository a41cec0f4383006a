package demo

import (
	"context"
	"errors"
	"io"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// A Candidate is one of the three.
type Candidate struct {
	Store kv.Store
	Name  string // of the election
	Part  Part
	Out   io.Writer // gets one event per line, before it is acted on
}

// Run campaigns and leads until ctx ends, or until an event cannot be written.
func (c *Candidate) Run(ctx context.Context) error {
	heard, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	w := witness.New(c.Part.ID, witness.Tell(c.Out, gone))
	options := c.Part.options()
	if options.Succession != nil {
		options.OnRole = func(role election.Role) {
			w.Note(history.Event{Kind: history.Became, Value: string(role)})
		}
	}
	candidate, err := election.New(c.Store, c.Name, options)
	if err != nil {
		return err
	}
	w.Note(history.Event{Kind: history.Ready})
	err = candidate.Run(heard, w.Lead)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}
