package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// distant is a store whose answers each take a moment, as those of a server do: on one
// that answers at once, what is done in the background is always done in time.
func distant(store kv.Store) kv.Store {
	faults := twice(store)
	for _, safe := range []*kvfault.Link{faults.Link, faults.heirs} {
		for _, op := range []kvfault.Op{kvfault.Create, kvfault.Swap, kvfault.HandOver, kvfault.Refresh, kvfault.Delete, kvfault.Get, kvfault.Watch} {
			safe.On(op).DelayReplies(time.Millisecond)
		}
	}
	return faults.Store
}

// withOrder makes candidates stand in an order.
func withOrder(order string) func(*election.Options) {
	return func(o *election.Options) { o.Succession = seam.Orders()[order] }
}

func TestATermThatEndsAtOnceLeavesNothingBehind(t *testing.T) {
	for order := range seam.Orders() {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				c := b.candidate(distant(store), "a", withOrder(order))
				for range 5 {
					began := time.Now()
					err := c.Run(t.Context(), func(context.Context, *election.Term) error {
						if order == "first" || order == "list" { // by rank, and in a ring, others may have come who are to be first
							require.Less(t, time.Since(began), 10*time.Millisecond, "a lone candidate waits for nobody")
						}
						return nil
					})
					require.NoError(t, err)
					for _, safe := range []string{b.name, b.name + ":heir"} {
						_, err = store.Get(t.Context(), safe)
						require.ErrorIs(t, err, kv.ErrVacant, "what stands at %s", safe)
					}
				}
			})
		})
	}
}

// turns count the terms of several candidates, and the longest time without one.
type turns struct {
	mu    sync.Mutex
	terms map[string]int
	ended time.Time
	gap   time.Duration
}

// lead does a term's work, of a given length.
func (y *turns) lead(id string, work time.Duration) {
	y.mu.Lock()
	y.gap = max(y.gap, time.Since(y.ended))
	y.terms[id]++
	y.mu.Unlock()
	time.Sleep(work)
	y.mu.Lock()
	y.ended = time.Now()
	y.mu.Unlock()
}

// Work that is quickly done has not failed, and holds nobody up.
func TestCandidatesThatResignAtOnceTakeTurnsWithoutAPause(t *testing.T) {
	for _, order := range []string{"first", "rank"} {
		for _, work := range []time.Duration{0, 5 * time.Millisecond, 300 * time.Millisecond} {
			for style, term := range map[string]func(context.Context, *election.Candidate, func()){
				"work returns": func(ctx context.Context, c *election.Candidate, work func()) {
					_ = c.Run(ctx, func(context.Context, *election.Term) error { work(); return nil })
				},
				"resigns in lead": func(ctx context.Context, c *election.Candidate, work func()) {
					_ = c.Run(ctx, func(ctx context.Context, term *election.Term) error {
						work()
						return term.Resign(context.WithoutCancel(ctx))
					})
				},
				"by hand": func(ctx context.Context, c *election.Candidate, work func()) {
					if term, err := c.Campaign(ctx); err == nil {
						work()
						_ = term.Resign(context.WithoutCancel(ctx))
					}
				},
			} {
				t.Run(fmt.Sprintf("%s, %v, %s", order, work, style), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b, y := newBallot(t), &turns{terms: map[string]int{}, ended: time.Now()}
						store := distant(memkv.New())
						ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
						defer stop()
						var all sync.WaitGroup
						for i, id := range []string{"a", "b"} {
							c := b.candidate(store, id, withOrder(order), func(o *election.Options) {
								o.TTL, o.Rank, o.Logger = 2*time.Second, i, nil
							})
							all.Go(func() {
								for ctx.Err() == nil {
									term(ctx, c, func() { y.lead(id, work) })
								}
							})
						}
						all.Wait()
						t.Log(y.terms, y.gap)
						require.Less(t, y.gap, time.Second, "no vacancy lasts for a TTL")
						require.Greater(t, y.terms["a"], 10, "nobody waits for ever")
						require.Greater(t, y.terms["b"], 10, "nobody waits for ever")
					})
				})
			}
		}
	}
}
