package etcdkv_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// A reign is a term of one of many elections.
type reign struct {
	term         *election.Term
	begun, ended time.Time // as its work learned; ended is zero until then
	cause        error     // why it has ended
	until        time.Time // when it had ended, up to when it had been trusted
}

// Reigns are all terms of many elections in one process, which each have one candidate.
type reigns struct {
	name string // their names begin with it
	mu   sync.Mutex
	all  [][]*reign // of each election, in order
}

// reigning runs candidates of so many elections, until the test ends.
func reigning(t testing.TB, store kv.Store, ttl time.Duration, elections int) *reigns {
	t.Helper()
	r := &reigns{name: signed("").Signature, all: make([][]*reign, elections)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
	for i := range elections {
		c, err := election.New(store, fmt.Sprintf("%s/%d", r.name, i), &election.Options{ID: "a", TTL: ttl})
		require.NoError(t, err)
		all.Go(func() {
			_ = c.Run(ctx, func(ctx context.Context, term *election.Term) error {
				r.reign(ctx, i, term)
				return nil
			})
		})
	}
	return r
}

// reign is the work of a term.
func (r *reigns) reign(ctx context.Context, i int, term *election.Term) {
	one := &reign{term: term, begun: time.Now()}
	r.mu.Lock()
	r.all[i] = append(r.all[i], one)
	r.mu.Unlock()
	<-ctx.Done()
	ended := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	one.ended, one.cause, one.until = ended, context.Cause(ctx), term.Until()
}

// now returns the terms that have not ended, in the order of their elections.
func (r *reigns) now() (alive []*reign) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, terms := range r.all {
		if n := len(terms); n > 0 && terms[n-1].ended.IsZero() {
			alive = append(alive, terms[n-1])
		}
	}
	return alive
}

// await waits until all elections have a leader, and returns their terms and when that was.
func (r *reigns) await(t testing.TB, within time.Duration) ([]*reign, time.Time) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		looked := time.Now()
		alive := r.now()
		if len(alive) == len(r.all) {
			return alive, looked
		}
		require.Less(t, looked.Sub(began), within, "%d of %d lead", len(alive), len(r.all))
	}
}

// awaitEnds waits until all of these terms have ended, and returns when the last one did.
func (r *reigns) awaitEnds(t testing.TB, these []*reign, within time.Duration) (latest time.Time) {
	t.Helper()
	ended := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, one := range these {
			if one.ended.IsZero() {
				return n
			}
			n++
			if one.ended.After(latest) {
				latest = one.ended
			}
		}
		return n
	}
	for began := time.Now(); ended() < len(these); time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(began), within, "terms go on")
	}
	return latest
}

// awaitRefresh waits until all of these terms are trusted up to some time, or longer.
func (r *reigns) awaitRefresh(t testing.TB, these []*reign, within time.Duration, until time.Time) {
	t.Helper()
	short := func(one *reign) bool { return one.term.Until().Before(until) }
	for began := time.Now(); slices.ContainsFunc(these, short); time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(began), within, "terms are not refreshed")
	}
}

// requireInOrder requires that no two terms of an election overlap, that tokens grow, and that
// what has ended was not trusted anew.
func (r *reigns) requireInOrder(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, terms := range r.all {
		for i, one := range terms {
			if !one.ended.IsZero() {
				require.ErrorIs(t, one.term.Err(), election.ErrLost)
				require.Equal(t, one.until, one.term.Until())
			}
			if i > 0 {
				before := terms[i-1]
				require.False(t, before.ended.IsZero())
				require.False(t, one.begun.Before(before.ended))
				require.Greater(t, one.term.Token(), before.term.Token())
			}
		}
	}
}
