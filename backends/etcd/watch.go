package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

const (
	// answerTime is how long a watch waits for the answer to a look: longer than
	// servers take to elect a leader, who has to confirm it.
	answerTime = 10 * time.Second

	// A watch that is lost pauses before it looks again, longer each time.
	firstPause = 250 * time.Millisecond
	lastPause  = 2 * time.Second

	// rest is the shortest time between two looks that changes ask for.
	rest = time.Millisecond
)

// Watch implements [kv.Store]: an etcd watch of all keys of the safe, then a linearizable
// read of them. From what the watch tells after that revision, it knows at any time which
// key is first. (A watch that is opened after the read, from that revision, is unsynced
// to etcd where others write meanwhile, and is told of changes up to 100 ms late:
// syncWatchersLoop in its server/storage/mvcc/watchable_store.go.) With Options.Plain, it
// reads the companion of each value that becomes the first. If the watch is lost (the
// revision was compacted, the server has no leader), it begins anew. All watches of a
// safe by one Store share an etcd watch, and each begins with a read. All watches by one
// Store share a stream.
//
// For a slow reader changes are merged: it is told the newest state when it goes on.
//
// About every [Options].Backstop, or less often (see there), it reads again. If nothing
// was heard on the stream for that long, it begins anew: so a read of any safe finds out
// that the connection, which all share, is dead. If no answer comes to the watch or to a
// read within ten seconds, or if it has only been lost again for so long, it ends with an
// error.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.board.Watch(ctx, name)
}

// Follow implements [kv.Board], as Watch watches.
func (s *Store) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	return s.board.Follow(name, tell)
}

// shown is the source of the store's board.
func (s *Store) shown(name string, t *board.Topic) (look board.Look, end func(), err error) {
	fail := func(err error) error {
		_, err = outcome(context.Background(), "watch", name, kv.Record{}, err)
		return err
	}
	sf, err := s.safe(name)
	if err != nil {
		return nil, nil, fail(err)
	}
	v := &view{safe: sf, hub: &s.watches, backstop: s.opts.Backstop, board: s.board, topic: t, pause: firstPause}
	return func(ctx context.Context, show func(kv.Record)) (time.Duration, error) {
		next, err := v.look(ctx, show)
		if err != nil {
			err = fail(err)
		}
		return next, err
	}, v.close, nil
}

// answered carries out a read that does not wait for ever. It does not begin if ctx
// has ended, of which the client would warn in its log.
func answered(ctx context.Context, read func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := read(bounded)
	if err != nil && !definite(err) && bounded.Err() != nil && ctx.Err() == nil {
		// Not %w: the deadline is none of the caller's.
		return fmt.Errorf("no answer in %v: %v", answerTime, err)
	}
	return err
}

// errLost means that a watch has ended, and may be opened anew.
var errLost = errors.New("the watch is lost")

// errSilent means that a watch was not confirmed in time.
var errSilent = fmt.Errorf("%w: no answer in %v", errLost, answerTime)

// lost reports whether a new look and a new watch are the answer to an error.
func lost(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, rpctypes.ErrCompacted) ||
		errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, rpctypes.ErrFutureRev)
}

// jitter returns a duration around d, at most a quarter off.
func jitter(d time.Duration) time.Duration {
	return time.Duration((0.75 + rand.Float64()/2) * float64(d))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
