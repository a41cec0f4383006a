package sqlkv

import (
	"context"
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

	// relief is how much rarer looks are where changes are told.
	relief = 10
)

// shown returns a board of what safes hold, as the judge's side sees it. The looks alone
// decide what it shows.
func (t *table) shown(j judge) *board.Board {
	return board.New(rest, func(name string, topic *board.Topic) (board.Look, func(), error) {
		fail := func(err error) error {
			_, err = t.outcome(context.Background(), "watch", name, kv.Record{}, err)
			return err
		}
		if err := t.checkName(name); err != nil {
			return nil, nil, fail(err)
		}
		end := t.attend(name, topic)
		var last kv.Record // zero if the safe was vacant
		calm := 0          // looks since something happened
		return func(ctx context.Context, show func(kv.Record)) (time.Duration, error) {
			r, err := t.look(ctx, name)
			if err != nil {
				return 0, fail(err)
			}
			rec, _ := r.record(j) // no record if the safe is vacant
			show(rec)
			calm++
			if !alike(rec, last) {
				calm = 0
			}
			last = rec
			return t.pause(rec, r, j, calm), nil
		}, end, nil
	})
}

// attend has a topic hinted at when its safe may have changed, and what is seen of it
// kept, until end is called.
func (t *table) attend(name string, topic *board.Topic) (end func()) {
	leave, forget := func() {}, func() {}
	if t.hub != nil {
		leave = t.hub.join(name, topic)
	}
	if t.seen != nil {
		forget = t.seen.Watch(name)
	}
	return func() {
		forget()
		leave()
	}
}

// alike reports whether at most a refresh lies between two records.
func alike(a, b kv.Record) bool {
	a.Revision, b.Revision = 0, 0
	return a == b
}

// pause returns how long a watch that has seen rec in a row, for so many looks,
// waits for a hint before it looks again. Where one thing happens, another often
// follows, so looks are closer to each other at first.
func (t *table) pause(rec kv.Record, r row, j judge, calm int) time.Duration {
	d := t.poll >> max(3-calm, 0)
	if t.hub != nil && t.hub.listens() {
		d = t.poll * relief
	}
	if j == byObservers && rec.TTL > 0 { // a refresh is seen before its owner is missed
		d = min(d, rec.TTL/2)
	}
	d -= rand.N(d/4 + 1)
	left := time.Duration(r.left.Int64) * time.Microsecond
	if j == byObservers || rec == (kv.Record{}) || !r.mortal || !r.left.Valid || left > d {
		return d
	}
	return min(d, left+rand.N(spread))
}
