package rediskv

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/kv"
)

const (
	// spread keeps those who wait for one expiry from looking all at once.
	spread = 20 * time.Millisecond

	// rest is the shortest time between two looks, whatever the hints.
	rest = 10 * time.Millisecond
)

// Watch implements [kv.Store]. It looks when it is told to, when the record is
// due to expire, and now and then. The looks alone decide what it yields, and
// make an expiry real: a server may take any time to do that by itself.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.follow(ctx, name, s.look)
}

// A lookout returns what a safe holds and the time that it has left. If it holds
// nothing, the error is redis.Nil.
type lookout func(ctx context.Context, at place) (kv.Record, time.Duration, error)

// follow watches a safe by looks.
func (s *Store) follow(ctx context.Context, name string, look lookout) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		at, err := s.place(name)
		if err != nil {
			yield(kv.Record{}, err)
			return
		}
		hints, leave := s.hub.join(at.record)
		defer leave()
		var last kv.Record // zero if the safe was vacant
		for first := true; ; first = false {
			rec, left, err := look(ctx, at)
			if err != nil && !errors.Is(err, redis.Nil) {
				yield(kv.Record{}, outcome("watch", name, err, nil))
				return
			}
			if (first || rec != last) && !yield(rec, outcome("watch", name, err, kv.ErrVacant)) {
				return
			}
			last = rec
			if err := wait(ctx, hints, s.pause(rec, left)); err != nil {
				yield(kv.Record{}, outcome("watch", name, err, nil))
				return
			}
		}
	}
}

// pause returns how long a watch that has seen rec waits for a hint before it
// looks again.
func (s *Store) pause(rec kv.Record, left time.Duration) time.Duration {
	d := s.backstop
	if s.observed && !rec.Foreign && rec.TTL > 0 {
		// Of two refreshes in a row that no hint told of, one is seen all the same.
		d = min(d, rec.TTL/2)
	}
	d -= rand.N(d/4 + 1)
	if rec == (kv.Record{}) || left > d {
		return d
	}
	// The server takes a key for expired in the millisecond after its last.
	return min(d, left+time.Millisecond+rand.N(spread))
}

// wait returns after d, or at a hint, or with the cause of ctx's end.
func wait(ctx context.Context, hints <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(min(d, rest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	timer.Reset(d - min(d, rest))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hints:
	case <-timer.C:
	}
	return nil
}
