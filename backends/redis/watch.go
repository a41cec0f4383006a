package rediskv

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

const (
	// spread keeps those who wait for one expiry from looking all at once.
	spread = 20 * time.Millisecond

	// rest is the shortest time between two looks, whatever the hints.
	rest = 10 * time.Millisecond
)

// Watch implements [kv.Store]. It looks when it is told to, when the record is due to
// expire, and now and then; A look also makes the server delete a record that has
// expired, for which the server may take any time by itself. A writer that tells the
// watch to look also says what it has written. The watch shows that before the look if it
// follows what was shown last. All watches of a safe share their looks.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.of(name).board.Watch(ctx, name)
}

// Follow implements [kv.Board], as Watch watches.
func (s *Store) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	return s.of(name).board.Follow(name, tell)
}

// A lookout returns what a safe holds and the time that it has left. If it holds
// nothing, the error is redis.Nil.
type lookout func(ctx context.Context, at place) (kv.Record, time.Duration, error)

// shown returns a board of what a lookout sees.
func (s *Store) shown(look lookout) *board.Board {
	return board.New(rest, func(name string, t *board.Topic) (board.Look, func(), error) {
		at, err := s.place(name)
		if err != nil {
			return nil, nil, err
		}
		v := &sight{store: s, name: name, at: at, lookout: look, topic: t}
		return v.look, s.hub.join(at.record, v), nil
	})
}

// confirmed has the watches of a safe look no sooner than they have to, when a refresh has
// just found that it holds the record, and given it a new life.
func (s *Store) confirmed(name string, rec kv.Record) {
	s.of(name).board.Holds(name, rec, s.pause(rec, rec.TTL))
}

// pause returns how long a watch that has seen rec waits for a hint before it
// looks again.
func (s *Store) pause(rec kv.Record, left time.Duration) time.Duration {
	d := s.board.Backstop(s.backstop, rec)
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
