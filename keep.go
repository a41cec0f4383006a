package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// keep keeps the term's lease, claimed at sent, until ctx ends: it refreshes the
// record a few times a TTL, and at once when a watch shows something else in the
// safe. It returns early when there is nothing left to keep: the record is not
// ours any more, or the term has ended and nobody's work has to be waited for.
func (t *Term) keep(ctx context.Context, sent instant) {
	latest, stop := t.c.sightings(ctx)
	defer stop()
	var checking sync.WaitGroup
	defer checking.Wait()
	checkctx, done := context.WithCancel(ctx)
	defer done()
	if t.c.opts.Health != nil {
		checking.Go(func() { t.check(checkctx) })
	}

	k := &keeper{Term: t, retry: t.c.pace.backoff(), last: sent.mono}
	refresh := time.NewTimer(k.next())
	defer refresh.Stop()
	for !k.gone {
		select {
		case <-ctx.Done():
			return
		case <-t.over():
			return
		case s := <-latest:
			if t.unlike(s) {
				refresh.Reset(k.soon())
			}
		case <-refresh.C:
			refresh.Reset(k.refresh(ctx))
		}
	}
}

// over returns a channel that is closed when the lease need not be kept any
// longer, though nobody has released it.
func (t *Term) over() <-chan struct{} {
	if t.drain {
		return nil
	}
	return t.ctx.Done()
}

// unlike reports whether a sighting shows anything but the term's record. It is
// a hint only: a refresh decides.
func (t *Term) unlike(s sighting) bool {
	if s.err != nil {
		return errors.Is(s.err, kv.ErrVacant)
	}
	return !s.rec.Owns(t.Record())
}

// A keeper refreshes one term's record.
type keeper struct {
	*Term
	retry backoff
	last  time.Time // when the last refresh, or the claim, was sent
	fails bool      // the last refresh had no clear answer
	gone  bool      // the record is not ours any more
}

// next returns when to refresh if all is well: a good while after the last send.
func (k *keeper) next() time.Duration {
	return k.c.pace.refresh - k.elapsed()
}

// soon returns when to refresh after a sighting that shows something else: now,
// but not in a tight loop with a watch that keeps on being wrong.
func (k *keeper) soon() time.Duration {
	return k.c.pace.spread - k.elapsed()
}

// elapsed returns how long ago the last refresh, or the claim, was sent.
func (k *keeper) elapsed() time.Duration {
	return k.c.clock().mono.Sub(k.last)
}

// refresh makes one attempt and returns how long to wait for the next. The lease
// is trusted from the moment before it was sent; a success that comes too late
// does not bring the term back, and a lost reply changes nothing.
func (k *keeper) refresh(ctx context.Context) time.Duration {
	attempt, cancel := context.WithTimeout(ctx, k.patience())
	defer cancel()
	sent := k.c.clock()
	k.last = sent.mono
	rec, err := k.c.store.Refresh(attempt, k.c.name, k.Record())
	switch {
	case err == nil:
		k.extend(rec, sent)
		if k.fails {
			k.c.log.InfoContext(ctx, "refreshes succeed again", "token", k.token)
		}
		k.fails = false
		k.retry.reset()
		return k.next()
	case errors.Is(err, kv.ErrStale):
		k.gone = true
		k.end(k.c.office.taken())
		return 0
	}
	if !k.fails && ctx.Err() == nil {
		k.c.log.WarnContext(ctx, "cannot refresh", "token", k.token, "error", err)
	}
	k.fails = true
	return k.retry.pause()
}

// check asks the health check at the pace of the refreshes, and ends the term
// when it fails or takes too long.
func (t *Term) check(ctx context.Context) {
	ticker := time.NewTicker(t.c.pace.refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		overdue := time.AfterFunc(t.c.pace.attempt+t.c.pace.spread, func() {
			t.end(fmt.Errorf("%w: %w: the check does not return", ErrResigned, errUnhealthy))
		})
		err := t.c.healthy(ctx)
		overdue.Stop()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.end(fmt.Errorf("%w: %w", ErrResigned, err))
			return
		}
	}
}
