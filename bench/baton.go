package main

import (
	"context"
	"fmt"
	"sync/atomic"
)

// A baton is how the limit of a store is measured: candidates hand over by a write
// that names the next one, and nothing is claimed, leased or refreshed. No election
// on that store can be faster, since each has to make a write and be told of one.
type baton interface {
	put(ctx context.Context, key string) error
	remove(ctx context.Context, key string) error
	// await returns when key is put. A put after it has called armed is not missed.
	await(ctx context.Context, key string, armed func()) error
	close()
}

type batonFamily struct{ baton }

func (f batonFamily) candidate(place place) (candidate, error) {
	c := &batonCandidate{baton: f.baton, place: place}
	c.first.Store(place.Index == 0)
	return c, nil
}

type batonCandidate struct {
	baton baton
	place place
	first atomic.Bool // it has the baton from the start
}

func (c *batonCandidate) key(i int) string {
	return fmt.Sprintf("%s/%d", c.place.Election, i%c.place.Of)
}

// acquire takes the baton from the start, or as the only candidate, by a write of its
// own; otherwise it waits for the write of the one before.
func (c *batonCandidate) acquire(ctx context.Context) (*held, error) {
	own := c.key(c.place.Index)
	take := func(ctx context.Context, key string) error { return c.baton.await(ctx, key, func() {}) }
	if c.place.Of == 1 || c.first.Swap(false) {
		take = c.baton.put
	}
	if err := take(ctx, own); err != nil {
		return nil, err
	}
	return &held{release: c.pass}, nil
}

func (c *batonCandidate) pass(ctx context.Context) error {
	if c.place.Of == 1 {
		return c.baton.remove(ctx, c.key(c.place.Index))
	}
	return c.baton.put(ctx, c.key(c.place.Index+1))
}
