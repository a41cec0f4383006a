package engine_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// A campaign that ends while its create is on its way waits for the record, and removes
// it: nobody leads by it, and it would keep all others out for a TTL.
func TestACampaignThatIsCancelledLeavesNoRecordThatComesLate(t *testing.T) {
	campaigns := map[string]func(context.Context, *election.Candidate) (*election.Term, error){
		"Campaign":    func(ctx context.Context, c *election.Candidate) (*election.Term, error) { return c.Campaign(ctx) },
		"TryCampaign": func(ctx context.Context, c *election.Candidate) (*election.Term, error) { return c.TryCampaign(ctx) },
	}
	for what, campaign := range campaigns {
		for _, late := range []time.Duration{time.Millisecond, ttl / 20, ttl / 10} {
			t.Run(what+" "+late.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, b := memkv.New(), newBallot(t)
					faults := kvfault.Wrap(store)
					faults.On(kvfault.Create).Withhold()
					ctx, cancel := context.WithCancel(t.Context())
					began := time.Now()
					time.AfterFunc(time.Second, func() {
						cancel()
						time.Sleep(late)
						faults.Deliver(t.Context())
					})
					_, err := campaign(ctx, b.candidate(faults.Store, "a"))
					require.ErrorIs(t, err, context.Canceled)
					require.LessOrEqual(t, time.Since(began), time.Second+ttl/3)
					synctest.Wait()
					_, err = store.Get(t.Context(), b.name)
					require.ErrorIs(t, err, kv.ErrVacant)
				})
			})
		}
	}
}

// It is elected in the moment in which its context ends.
func TestACampaignThatGetsNoTermLeavesNoWatchOfTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := &parting{Store: memkv.New()}, newBallot(t)
		ctx := &quiet{Context: t.Context()}
		c := b.candidate(winning{store, func() { ctx.ended.Store(true) }}, "a", noHeir, func(o *election.Options) { o.Requests = true })
		_, err := c.Campaign(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NotZero(t, store.opened.Load())
		require.Zero(t, store.watches.Load())
	})
}

// A quiet context does not tell of its end before it is asked.
type quiet struct {
	context.Context
	ended atomic.Bool
}

func (q *quiet) Done() <-chan struct{} { return nil }

func (q *quiet) Err() error {
	if q.ended.Load() {
		return context.Canceled
	}
	return nil
}

// A parting store counts its watches, which take their time to end.
type parting struct {
	kv.Store
	opened  atomic.Int32
	watches atomic.Int32
}

func (s *parting) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	watch := s.Store.Watch(ctx, name)
	return func(yield func(kv.Record, error) bool) {
		s.opened.Add(1)
		s.watches.Add(1)
		defer s.watches.Add(-1)
		for rec, err := range watch {
			if !yield(rec, err) {
				break
			}
		}
		time.Sleep(time.Second)
	}
}
