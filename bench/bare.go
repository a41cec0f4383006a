package main

import "context"

// bareContenders elect nobody: what they cost is the harness's own.
func bareContenders() []contender {
	return []contender{{
		Name: "harness alone", Store: inMemory, Kind: bare,
		How:  "nothing is elected: what a blocked goroutine of the user's and the bench itself cost",
		open: func(seat) (family, error) { return bareFamily{}, nil },
	}}
}

type bareFamily struct{}

func (bareFamily) close() {}

func (bareFamily) candidate(place place) (candidate, error) { return bareCandidate{place}, nil }

type bareCandidate struct{ place place }

// acquire elects the first candidate, and lets the others wait for ever.
func (c bareCandidate) acquire(ctx context.Context) (*held, error) {
	if c.place.Index > 0 && c.place.Of > 1 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return &held{release: func(context.Context) error { return nil }}, nil
}
