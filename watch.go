package election

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A Leader is the leader of an election, as an observer sees it. Leaders can be
// compared with ==; two terms of one candidate differ in their tokens.
type Leader struct {
	ID    string // the candidate's Options.ID; empty if foreign
	Value string // what it published last
	Token uint64 // the term's fencing token
	// Foreign is set if the safe holds a record that this library did not
	// write: another program's lock. Value is then what that program wrote.
	Foreign bool

	// Rank is set for leaders with a succession.
	Rank int

	// Since is when the leader was elected, by its own wall clock, for people to
	// compare with theirs. It is zero if that is unknown: for a foreign lock, and for a
	// leader that waited in line with old locks and has no succession.
	Since time.Time
}

// An Heir is the candidate that is next, as an observer sees it.
type Heir struct {
	ID    string    // the candidate's Options.ID
	Value string    // its Options.Value
	Rank  int       // its Options.Rank
	Since time.Time // when it became heir, by its own wall clock
}

// CurrentHeir returns the heir of the election, or ErrNoHeir. If another program's lock
// is in the heir's safe, the error matches ErrHeld: there can be no heir then. The answer
// may be out of date when it returns; for a moment after a change of leader it is the
// leader itself.
func CurrentHeir(ctx context.Context, store kv.Store, name string) (Heir, error) {
	if err := checkReserved(name); err != nil {
		return Heir{}, err
	}
	rec, err := store.Get(ctx, heirSafe(name))
	if err != nil && !errors.Is(err, kv.ErrVacant) {
		return Heir{}, fmt.Errorf("election: heir of %q: %w", name, err)
	}
	n := machine.NoteOf(rec)
	switch {
	case rec.Foreign:
		return Heir{}, fmt.Errorf("%w: a lock that this library did not write is at %q, where the heir belongs", ErrHeld, heirSafe(name))
	case err != nil, n.Calls != "":
		return Heir{}, ErrNoHeir
	}
	return Heir{ID: machine.IDOf(rec.Signature), Value: rec.Value, Rank: n.Rank, Since: sinceOf(n)}, nil
}

// CurrentHeirs returns the IDs of the candidates that should follow the leader, in order:
// its Options.Heirs, or what it set last by Term.SetHeirs. It returns none if the leader
// published none, or is another program's lock, and ErrNoLeader if nobody leads. The
// answer may be out of date when it returns. CurrentHeir says whether one of them is heir.
func CurrentHeirs(ctx context.Context, store kv.Store, name string) ([]string, error) {
	rec, err := leaderRecord(ctx, store, name, "heirs")
	if err != nil || rec.Foreign {
		return nil, err
	}
	return machine.NoteOf(rec).Heirs, nil
}

// Current returns the leader of the election, or ErrNoLeader. The answer may be out of
// date when it returns. To act as the leader, hold a Term.
func Current(ctx context.Context, store kv.Store, name string) (Leader, error) {
	rec, err := leaderRecord(ctx, store, name, "current leader")
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(rec), nil
}

// leaderRecord reads the leader's record, or returns ErrNoLeader. What says what it is read for.
func leaderRecord(ctx context.Context, store kv.Store, name, what string) (kv.Record, error) {
	if err := checkReserved(name); err != nil {
		return kv.Record{}, err
	}
	rec, err := store.Get(ctx, name)
	switch {
	case errors.Is(err, kv.ErrVacant):
		return kv.Record{}, ErrNoLeader
	case err != nil:
		return kv.Record{}, fmt.Errorf("election: %s of %q: %w", what, name, err)
	}
	return rec, nil
}

// Watch yields the leader of the election: the present one first, then again after each
// change of leader or of what the leader published, merged if the reader is slow. While
// nobody leads it yields ErrNoLeader with a zero Leader, and goes on.
//
// While there is trouble with the store, Watch yields the error with a zero Leader, at
// most a few times per second, and goes on. When the trouble is over it yields the leader
// again, even if nothing has changed. It ends when ctx has ended or the store can never
// do what is asked, and yields ctx's cause or the reason last.
// So a reader need not break for any error.
//
// Breaking out of the loop ends the watch; there is nothing to close.
func Watch(ctx context.Context, store kv.Store, name string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := checkReserved(name); err != nil {
			yield(Leader{}, err)
			return
		}
		w := watcher{yield: yield}
		retry := backoff{least: watchPause / 8, most: watchPause, jitter: rand.N[time.Duration]}
		for {
			began := time.Now()
			err := w.watch(ctx, store, name)
			switch {
			case w.left:
				return
			case ctx.Err() != nil:
				yield(Leader{}, fmt.Errorf("election: watch %q: %w", name, context.Cause(ctx)))
				return
			case !w.tell(view{}, fmt.Errorf("election: watch %q: %w", name, err)), errors.Is(err, kv.ErrInvalid):
				return
			}
			if time.Since(began) > watchPause {
				retry.reset()
			}
			sleep(ctx, retry.pause())
		}
	}
}

// watchPause is how long Watch waits at most before it tries again.
const watchPause = 2 * time.Second

// A view is the last state that an observer was told.
type view struct {
	leader Leader
	known  bool // it was told who leads, or that nobody does
	vacant bool
}

// A watcher tells an observer what a store's watch shows.
type watcher struct {
	yield func(Leader, error) bool
	last  view
	left  bool // the observer has broken out of its loop
}

// watch reports what one watch of the store shows, until it ends, and returns why.
func (w *watcher) watch(ctx context.Context, store kv.Store, name string) error {
	for rec, err := range store.Watch(ctx, name) {
		next := view{known: true, vacant: errors.Is(err, kv.ErrVacant)}
		switch {
		case next.vacant:
			err = ErrNoLeader
		case err != nil:
			return err
		default:
			next.leader = leaderOf(rec)
		}
		if next != w.last && !w.tell(next, err) {
			return err
		}
	}
	return errEnded
}

// errEnded is the error of a store's watch that ended without one.
var errEnded = errors.New("the watch has ended")

// tell yields a view and notes it. It reports whether the observer goes on.
func (w *watcher) tell(next view, err error) bool {
	w.last = next
	w.left = !w.yield(next.leader, err)
	return !w.left
}

func leaderOf(rec kv.Record) Leader {
	if rec.Foreign {
		return Leader{Value: rec.Value, Token: rec.Token, Foreign: true}
	}
	n := machine.NoteOf(rec)
	return Leader{ID: machine.IDOf(rec.Signature), Value: rec.Value, Token: rec.Token, Rank: n.Rank, Since: sinceOf(n)}
}
