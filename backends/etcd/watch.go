package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
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

// Watch implements [kv.Store]: a linearizable read of all keys of the safe, then
// an etcd watch of them from the revision after it, from which it knows at any
// time which key is first. With Options.Plain, it reads the companion of each
// value that comes to be first. If the watch is lost (the revision was compacted,
// the server has no leader), it begins anew.
//
// For a slow reader changes are merged: it is told the newest state when it goes on.
//
// After about [Options].Backstop without a loss it begins anew as well, which
// bounds how long a connection can be dead unnoticed. If no answer comes to a
// read within ten seconds, the watch ends with an error.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		sf, err := s.open(ctx, name)
		if err == nil {
			w := watch{safe: sf, backstop: s.opts.Backstop, yield: yield}
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
	last kv.Record // and what last: zero for a vacant safe
}

// run goes on until the reader leaves or an error ends the watch.
func (w *watch) run(ctx context.Context) error {
	pause := firstPause
	for {
		err := w.round(ctx)
		switch {
		case err == nil:
			pause = firstPause
		case lost(err):
			sleep(ctx, jitter(pause))
			pause = min(2*pause, lastPause)
		default:
			return err
		}
	}
}

// round looks, and tells of what changes from then on, until it is time to look
// again. The client keeps every change that nobody has taken from it, so a
// goroutine takes them at once, however long the reader is busy, and has the newest
// state ready.
func (w *watch) round(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	newest := make(chan line, 1)
	var ended error // valid when newest is closed
	var listener sync.WaitGroup
	defer listener.Wait()
	defer cancel()
	listener.Go(func() {
		defer close(newest)
		ended = w.listen(ctx, newest)
	})
	for front := range newest {
		if err := w.tell(ctx, front); err != nil {
			return err
		}
	}
	return ended
}

// listen reads the whole line, follows its changes, and leaves the newest front in
// the channel. It returns nil when it is time to look again.
func (w *watch) listen(ctx context.Context, newest chan line) error {
	l, err := w.look(ctx)
	if err != nil {
		return err
	}
	head := l.head()
	newest <- l.front()
	// The client's Watch waits for the server to confirm, so it needs a bound
	// too.
	round, cancel := context.WithTimeout(ctx, jitter(w.backstop))
	defer cancel()
	// The client puts all watches whose contexts have the same gRPC metadata on
	// one stream.
	changes := w.client.Watch(clientv3.WithRequireLeader(round), w.start,
		clientv3.WithRange(w.end), clientv3.WithRev(l.revision+1))
	for {
		select {
		case <-round.Done():
			return nil
		case resp, open := <-changes:
			switch err := resp.Err(); {
			case round.Err() != nil:
				return nil
			case !open:
				return errLost
			case err != nil:
				return err
			}
			l.apply(resp.Events)
			if now := l.head(); now != head {
				head = now
				replace(newest, l.front())
			}
		}
	}
}

// replace puts the value into a channel with room for one, in the place of what is
// there. Nobody else puts anything there.
func replace[T any](c chan T, value T) {
	select {
	case <-c:
	default:
	}
	c <- value
}

// look reads the whole line.
func (w *watch) look(ctx context.Context) (l line, err error) {
	err = answered(ctx, func(ctx context.Context) (err error) {
		l, err = w.read(ctx, w.all())
		return err
	})
	return l, err
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

// tell yields what the safe holds now, unless that was told last. It passes on
// every error but ErrVacant.
func (w *watch) tell(ctx context.Context, front line) error {
	var rec kv.Record
	vacant := answered(ctx, func(ctx context.Context) (err error) {
		rec, err = w.held(ctx, front)
		return err
	})
	if vacant != nil && !errors.Is(vacant, kv.ErrVacant) {
		return vacant
	}
	if w.told && rec == w.last {
		return nil
	}
	w.told, w.last = true, rec
	if !w.yield(rec, vacant) {
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
