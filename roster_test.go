package election_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// requestsOf returns how many requests refresh the records of a process for a hundred TTLs,
// which stands in so many elections and leads in all of them, or waits in all of them.
func requestsOf(t *testing.T, elections int, roster, leads bool) (requests int, s *registry) {
	const ttl = 10 * time.Second
	s = newRegistry()
	var told atomic.Int64 // refreshes of records in the roster, by the hook
	hooks := &election.Hooks{StoreDone: func(_ context.Context, i election.StoreDoneInfo) {
		if i.Safe == "roster" && i.Op == election.OpRefresh && i.Outcome == election.OutcomeOK {
			told.Add(1)
		}
	}}
	var stops []func()
	stand := func(id, name string, roster bool) {
		c, err := election.New(s, name, &election.Options{ID: id, TTL: ttl, NoHeir: true, Roster: roster, Hooks: hooks})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
		stops = append(stops, func() {
			cancel()
			<-done
		})
	}
	for i := range elections {
		name := fmt.Sprint("e", i)
		if !leads {
			_, err := s.Store.Create(t.Context(), name, kv.Record{Signature: "other/1", TTL: 1000 * time.Hour})
			require.NoError(t, err)
		}
		stand("a", name, roster)
	}
	time.Sleep(10 * ttl) // they find together
	s.mu.Lock()
	before := len(s.batches) + s.single
	s.mu.Unlock()
	time.Sleep(100 * ttl)
	s.mu.Lock()
	requests = len(s.batches) + s.single - before
	s.mu.Unlock()
	if roster {
		for i := range elections {
			all, err := election.Members(t.Context(), s, fmt.Sprint("e", i))
			require.NoError(t, err)
			require.NotZero(t, all[len(all)-1].Number)
			require.Equal(t, "a", all[len(all)-1].ID)
		}
	}
	for _, stop := range stops {
		stop()
	}
	if roster {
		require.GreaterOrEqual(t, told.Load(), int64(elections*100), "two refreshes of each for each TTL")
	} else {
		require.Zero(t, told.Load())
	}
	return requests, s
}

func TestTheRecordOfALeaderInTheRosterCostsNoRequest(t *testing.T) {
	for _, elections := range []int{1, 10} {
		var without, with int
		synctest.Test(t, func(t *testing.T) { without, _ = requestsOf(t, elections, false, true) })
		synctest.Test(t, func(t *testing.T) {
			var s *registry
			with, s = requestsOf(t, elections, true, true)
			for name := range s.shared {
				require.True(t, s.shared[name], "%s can share a lease from the beginning", name)
				require.True(t, s.share[name], name)
			}
			require.Len(t, s.shared, 2*elections, "each record was created once")
			require.Zero(t, s.single)
		})
		require.Positive(t, without)
		require.InDelta(t, without, with, 2, "requests in a hundred TTLs, of %d elections", elections) // at the edges
	}
}

// A candidate that waits would send none. Two for each TTL are for all its elections together.
func TestTheRecordsOfAProcessThatWaitsGoTogether(t *testing.T) {
	for _, elections := range []int{1, 50} {
		synctest.Test(t, func(t *testing.T) {
			without, _ := requestsOf(t, elections, false, false)
			require.Zero(t, without)
		})
		synctest.Test(t, func(t *testing.T) {
			with, _ := requestsOf(t, elections, true, false)
			require.LessOrEqual(t, with, 250, "requests in a hundred TTLs, of %d elections", elections)
			require.GreaterOrEqual(t, with, 200)
		})
	}
}
