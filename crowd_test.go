package election_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// A busy store takes its time for each request, and counts those that are under way. It can
// be out of order: then no request is answered.
type busy struct {
	*registry
	takes time.Duration
	out   atomic.Bool

	mu     sync.Mutex
	inside int
	most   int // claims and looks at a time
	sent   int // requests of all kinds
}

func newBusy(takes time.Duration) *busy {
	s := &busy{registry: newRegistry(), takes: takes}
	honest := s.refresh
	s.refresh = func(ctx context.Context, r kv.Held) (rec kv.Record, err error) {
		err = s.serve(ctx, func() { rec, err = honest(ctx, r) })
		return rec, err
	}
	return s
}

// serve carries a request out, unless the store is out of order.
func (s *busy) serve(ctx context.Context, do func()) (err error) {
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.out.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	do()
	return nil
}

// claim serves what is to wait for its turn.
func (s *busy) claim(ctx context.Context, do func()) error {
	s.mu.Lock()
	s.inside++
	s.most = max(s.most, s.inside)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inside--
	}()
	return s.serve(ctx, do)
}

func (s *busy) Create(ctx context.Context, name string, rec kv.Record) (got kv.Record, err error) {
	if lost := s.claim(ctx, func() { got, err = s.Store.Create(ctx, name, rec) }); lost != nil {
		return kv.Record{}, lost
	}
	return got, err
}

func (s *busy) Get(ctx context.Context, name string) (got kv.Record, err error) {
	if lost := s.claim(ctx, func() { got, err = s.Store.Get(ctx, name) }); lost != nil {
		return kv.Record{}, lost
	}
	return got, err
}

func (s *busy) Refresh(ctx context.Context, name string, rec kv.Record) (got kv.Record, err error) {
	if lost := s.serve(ctx, func() { got, err = s.Store.Refresh(ctx, name, rec) }); lost != nil {
		return kv.Record{}, lost
	}
	return got, err
}

// peak returns how many requests were sent since it was asked last, and how many claims and
// looks there were at a time.
func (s *busy) peak() (requests, together int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, together = s.sent, s.most
	s.sent, s.most = 0, 0
	return requests, together
}

// stand runs candidates of so many elections, and returns how many lead, and what stops
// them.
func stand(t *testing.T, s kv.Store, elections int) (leading *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	leading = &atomic.Int64{}
	var all sync.WaitGroup
	for i := range elections {
		c, err := election.New(s, fmt.Sprint("election ", i), &election.Options{ID: "a", TTL: ttl})
		require.NoError(t, err)
		c.SetClock(func() (mono, boot time.Duration) { return time.Since(begun), time.Since(begun) }) // however long that really takes
		all.Go(func() {
			_ = c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				leading.Add(1)
				defer leading.Add(-1)
				<-ctx.Done()
				return nil
			})
		})
	}
	return leading, func() {
		cancel()
		all.Wait()
	}
}

const (
	ttl              = 10 * time.Second
	thousand, atOnce = 1000, 128
)

// Refreshes do not wait behind claims: terms of the first hold while the last are elected.
func TestElectionsThatBeginAtOnceClaimInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(ttl / 5)
		leading, stop := stand(t, s, thousand)
		defer stop()
		time.Sleep(ttl * 9 / 10)
		_, most := s.peak()
		require.Equal(t, atOnce, most)
		require.Greater(t, leading.Load(), int64(thousand/3), "while others wait for their turn")
		require.Less(t, leading.Load(), int64(thousand))
		time.Sleep(4 * ttl)
		require.EqualValues(t, thousand, leading.Load())
	})
}

// All terms end, as they must. Then the store gets no more requests for each election, dark
// or light, than one that is alone would send.
func TestElectionsThatLoseTheirStoreAndGetItBackMakeNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBusy(time.Millisecond)
		leading, stop := stand(t, s, thousand)
		defer stop()
		time.Sleep(ttl)
		require.EqualValues(t, thousand, leading.Load())
		s.out.Store(true)
		time.Sleep(ttl)
		require.Zero(t, leading.Load())
		s.peak()
		time.Sleep(10 * ttl)
		const perAttempt = ttl * 9 / 10 / 3
		requests, _ := s.peak()
		require.Less(t, requests, int(10*ttl/perAttempt)*atOnce*5/4, "while the store is dark: as many as there is room for")
		s.out.Store(false)
		time.Sleep(2 * ttl)
		require.EqualValues(t, thousand, leading.Load())
		requests, together := s.peak()
		require.LessOrEqual(t, requests, 12*thousand, "of those that come back, and refresh twice")
		require.LessOrEqual(t, together, atOnce)
	})
}

// A jammed store answers no claim and no look once it is jammed, and all else at once.
type jammed struct {
	kv.Store
	now  atomic.Bool
	lost atomic.Bool // the answer to a swap
}

func (s *jammed) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if s.now.Load() {
		<-ctx.Done()
		return kv.Record{}, context.Cause(ctx)
	}
	return s.Store.Create(ctx, name, rec)
}

func (s *jammed) Get(ctx context.Context, name string) (kv.Record, error) {
	if s.now.Load() && name != "billing" {
		<-ctx.Done()
		return kv.Record{}, context.Cause(ctx)
	}
	return s.Store.Get(ctx, name)
}

func (s *jammed) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := s.Store.Swap(ctx, name, old, next)
	if s.lost.Load() {
		return kv.Record{}, errors.New("no answer")
	}
	return rec, err
}

// jam returns a store that is jammed, and a term that began before.
func jam(t *testing.T) (*jammed, *election.Term) {
	t.Helper()
	s := &jammed{Store: memkv.New()}
	c, err := election.New(s, "billing", &election.Options{ID: "a", TTL: ttl, NoHeir: true})
	require.NoError(t, err)
	term, err := c.Campaign(t.Context())
	require.NoError(t, err)
	s.now.Store(true)
	return s, term
}

func TestATermIsNotHeldUpByClaimsThatWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, term := jam(t)
		leading, stop := stand(t, s, thousand)
		defer stop()
		time.Sleep(5 * ttl)
		require.NoError(t, term.Err())
		require.Zero(t, leading.Load())
		begun := time.Now()
		require.NoError(t, term.Resign(t.Context()))
		require.Zero(t, time.Since(begun))
	})
}

// A look that must come before the next refresh, or before a candidate can leave, waits for nobody.
func TestLooksOfOwnersAndOfThoseThatLeaveDoNotWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, term := jam(t)
		_, stop := stand(t, s, thousand)
		time.Sleep(5 * ttl)
		s.lost.Store(true)
		require.NoError(t, term.Proclaim(t.Context(), "x"), "the look finds it")
		s.lost.Store(false)
		time.Sleep(5 * ttl)
		require.NoError(t, term.Err())
		begun := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(begun), ttl/2)
		require.NoError(t, term.Resign(t.Context()))
	})
}

var _ kv.Batch = (*busy)(nil)
