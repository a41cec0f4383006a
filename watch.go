package election

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/electkv/election/kv"
)

// A Leader is who leads an election, as an observer sees it. Leaders can be
// compared with ==; two terms of one candidate differ in their tokens.
type Leader struct {
	ID    string // the candidate's Options.ID; empty if foreign
	Value string // what it published last
	Token uint64 // the term's fencing token
	// Foreign is set if the safe holds a record that this library did not
	// write: somebody's lock. Value is then whatever its holder wrote.
	Foreign bool
}

// Current returns who leads the election now, or ErrNoLeader. It may be out of
// date when it returns: to act as the leader, hold a Term.
func Current(ctx context.Context, store kv.Store, name string) (Leader, error) {
	rec, err := store.Get(ctx, name)
	if errors.Is(err, kv.ErrVacant) {
		return Leader{}, ErrNoLeader
	}
	if err != nil {
		return Leader{}, fmt.Errorf("election: current leader of %q: %w", name, err)
	}
	return leaderOf(rec), nil
}

// Watch yields who leads the election: first at present, then after each change
// of leader or of what the leader published, merged if the reader is slow. While
// nobody leads it yields ErrNoLeader with a zero Leader, and goes on. Any other
// error is the last thing it yields: ctx's cause, or the trouble with the store,
// after which the reader may simply watch anew.
//
// Breaking out of the loop ends the watch; there is nothing to close.
func Watch(ctx context.Context, store kv.Store, name string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		type state struct {
			leader Leader
			vacant bool
		}
		last := state{vacant: true, leader: Leader{Foreign: true}} // like no state that is reported
		for rec, err := range store.Watch(ctx, name) {
			if err != nil && !errors.Is(err, kv.ErrVacant) {
				yield(Leader{}, fmt.Errorf("election: watch %q: %w", name, err))
				return
			}
			next := state{vacant: err != nil}
			if err == nil {
				next.leader = leaderOf(rec)
			}
			if next == last {
				continue
			}
			last = next
			if next.vacant {
				err = ErrNoLeader
			}
			if !yield(next.leader, err) {
				return
			}
		}
	}
}

func leaderOf(rec kv.Record) Leader {
	if rec.Foreign {
		return Leader{Value: rec.Value, Token: rec.Token, Foreign: true}
	}
	return Leader{ID: idOf(rec.Signature), Value: rec.Value, Token: rec.Token}
}
