package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

const (
	// answerTime is how long a watch waits for the answer to a look: longer than
	// servers take to elect a leader, who has to confirm it.
	answerTime = 10 * time.Second

	// A watch that is lost pauses before it looks again, longer each time.
	firstPause = 250 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Watch implements [kv.Store]: a linearizable read, then an etcd watch from the
// revision after it. If that watch is lost (the revision was compacted, the
// server has no leader), it begins anew.
//
// After about [Options].Backstop without a loss it begins anew as well, which
// bounds how long a connection can be dead unnoticed. If no answer comes to a
// read within ten seconds, the watch ends with an error.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		sf, err := s.open(ctx, name)
		if err == nil {
			w := watch{safe: sf, backstop: s.backstop, yield: yield}
			err = w.run(ctx)
		}
		if !errors.Is(err, errLeft) {
			yield(outcome(ctx, "watch", name, kv.Record{}, err))
		}
	}
}

var (
	// errLeft means that the reader has left the loop.
	errLeft = errors.New("the reader has left")
	// errLost means that the client has closed the watch, and has not said why.
	errLost = errors.New("the watch is lost")
)

// A watch tells a reader what its safe holds.
type watch struct {
	safe
	backstop time.Duration
	yield    func(kv.Record, error) bool

	told bool      // whether the reader was told anything yet,
	last kv.Record // and what: zero for a vacant safe
}

// run goes on until the reader leaves or an error ends the watch.
func (w *watch) run(ctx context.Context) error {
	pause := firstPause
	for {
		rec, revision, err := w.look(ctx)
		if err := w.tell(rec, err); err != nil {
			return err
		}
		err = w.follow(ctx, revision+1)
		if err == nil {
			pause = firstPause
			continue
		}
		if !lost(err) {
			return err
		}
		sleep(ctx, jitter(pause))
		pause = min(2*pause, lastPause)
	}
}

// look reads the key, and does not wait for ever.
func (w *watch) look(ctx context.Context) (kv.Record, int64, error) {
	bounded, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	rec, revision, err := w.safe.look(bounded)
	if err != nil && !definite(err) && bounded.Err() != nil && ctx.Err() == nil {
		// Not %w: the deadline is none of the caller's.
		return kv.Record{}, 0, fmt.Errorf("no answer in %v: %v", answerTime, err)
	}
	return rec, revision, err
}

// follow tells of every change from the revision on. It returns nil when it is
// time to look again.
func (w *watch) follow(ctx context.Context, revision int64) error {
	// The client's Watch waits for the server to confirm, so it needs a bound
	// too.
	ctx, cancel := context.WithTimeout(ctx, jitter(w.backstop))
	defer cancel()
	// The client puts all watches whose contexts have the same gRPC metadata on
	// one stream.
	changes := w.client.Watch(clientv3.WithRequireLeader(ctx), w.key, clientv3.WithRev(revision))
	for {
		select {
		case <-ctx.Done():
			return nil
		case resp, open := <-changes:
			if ctx.Err() != nil {
				return nil
			}
			if !open {
				return errLost
			}
			if err := w.tellLast(resp); err != nil {
				return err
			}
		}
	}
}

// tellLast tells of the last of the changes in one message.
func (w *watch) tellLast(resp clientv3.WatchResponse) error {
	if err := resp.Err(); err != nil {
		return err
	}
	if len(resp.Events) == 0 {
		return nil
	}
	event := resp.Events[len(resp.Events)-1]
	if event.Type == clientv3.EventTypeDelete {
		return w.tell(kv.Record{}, kv.ErrVacant)
	}
	return w.tell(decode(event.Kv), nil)
}

// tell yields a state unless it is the one that was told last. It passes on
// every error but ErrVacant.
func (w *watch) tell(rec kv.Record, err error) error {
	if err != nil && !errors.Is(err, kv.ErrVacant) {
		return err
	}
	if w.told && rec == w.last {
		return nil
	}
	w.told, w.last = true, rec
	if !w.yield(rec, err) {
		return errLeft
	}
	return nil
}

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
