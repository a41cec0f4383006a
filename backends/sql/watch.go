package sqlkv

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

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

// watch yields what a safe holds, as the judge's side sees it. The looks alone
// decide what it yields.
func (t *table) watch(ctx context.Context, name string, j judge) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		end := func(err error) {
			_, err = t.outcome(ctx, "watch", name, kv.Record{}, err)
			yield(kv.Record{}, err)
		}
		if err := t.checkName(name); err != nil {
			end(err)
			return
		}
		var hints <-chan struct{}
		if t.hub != nil {
			var leave func()
			hints, leave = t.hub.join(name)
			defer leave()
		}
		if t.seen != nil {
			defer t.seen.Watch(name)()
		}
		var last kv.Record // zero if the safe was vacant
		calm := 0          // looks since something happened
		for first := true; ; first = false {
			r, err := t.look(ctx, name)
			if err != nil {
				end(err)
				return
			}
			rec, err := r.record(j)
			if first || rec != last {
				if _, err = t.outcome(ctx, "watch", name, rec, err); !yield(rec, err) {
					return
				}
			}
			calm++
			if !alike(rec, last) {
				calm = 0
			}
			last = rec
			if err := wait(ctx, hints, t.pause(rec, r, j, calm)); err != nil {
				end(err)
				return
			}
		}
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
