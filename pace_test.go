package election

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

func TestTheMarginPaysForDriftAndReaction(t *testing.T) {
	for _, ttl := range []time.Duration{150 * time.Millisecond, time.Second, 15 * time.Second, time.Hour} {
		p, err := newPace(ttl, 0)
		require.NoError(t, err)
		T, G := float64(ttl), float64(p.Margin)
		require.LessOrEqual(t, (T-G)/(1-drift)+float64(reaction), T/(1+drift)+1e6*T/1e9,
			"TTL %v: a leader with a slow clock stops before a store with a fast one lets another in", ttl)
		require.LessOrEqual(t, p.Refresh+2*p.Attempt+p.Margin, ttl, "TTL %v: a refresh can be tried twice", ttl)
		require.GreaterOrEqual(t, p.Margin, ttl/10)
	}
}

func TestAMarginThatDoesNotFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		ttl, margin time.Duration
		says        string
	}{
		{15 * time.Second, 100 * time.Millisecond, "margin 100ms is too small for TTL 15s: clocks that differ and a busy machine need at least 348ms"},
		{15 * time.Second, -time.Second, "margin -1s is too small"},
		{10 * time.Second, 9 * time.Second, "TTL 10s is too short for margin 9s: leadership could be trusted for 1s only; use a TTL of at least 12s"},
		{10 * time.Millisecond, 0, "TTL 10ms is too short"},
		{-time.Second, 0, "TTL -1s is negative"},
	} {
		_, err := newPace(c.ttl, c.margin)
		require.ErrorContains(t, err, c.says)
	}
	_, err := newPace(12*time.Second, 9*time.Second)
	require.NoError(t, err, "what the error recommends is right")
}

// What is refused is told the least that is not.
func TestAdviceAndCheckAreOneComputation(t *testing.T) {
	margins := []time.Duration{0}
	for margin := time.Millisecond; margin < time.Minute; margin += margin/3 + 7*time.Microsecond {
		margins = append(margins, margin)
	}
	for _, margin := range margins {
		least := leastTTL(margin)
		_, err := newPace(least-time.Millisecond, margin)
		require.Error(t, err, "margin %v", margin)
		if margin == 0 || margin >= leastMargin(least) {
			_, err = newPace(least, margin)
			require.NoError(t, err, "margin %v", margin)
		}
	}
	require.Equal(t, 90*time.Millisecond, leastTTL(0))
}

// A grid is a store that grants TTLs from one to another, as Consul does.
type grid struct {
	*memkv.Store
	from, to time.Duration
}

func (g grid) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if ttl < g.from || ttl > g.to {
		return kv.Lifetime{}, fmt.Errorf("gridkv: TTL %v: want %v to %v: %w", ttl, g.from, g.to, kv.ErrInvalid)
	}
	return kv.Lifetime{Min: ttl, Max: ttl}, nil
}

func TestOneErrorNamesAllThatIsWrongAndValuesThatWorkTogether(t *testing.T) {
	coarse := grid{memkv.New(), 10 * time.Second, 24 * time.Hour}
	for _, c := range []struct {
		store       kv.Store
		ttl, margin time.Duration
		says        string
	}{
		{coarse, time.Second, 0, "election: TTL 1s: gridkv: TTL 1s: want 10s to 24h0m0s: kv: invalid request"},
		{coarse, time.Millisecond, 0, "election: TTL 1ms is too short for margin 51ms: leadership could be trusted for 0s only; gridkv: TTL 1ms: want 10s to 24h0m0s: kv: invalid request; use a TTL of at least 10s"},
		{coarse, time.Second, 100 * time.Millisecond, "election: TTL 1s: gridkv: TTL 1s: want 10s to 24h0m0s: kv: invalid request; use a TTL of at least 10s with a margin of 249ms, which grows with the TTL"},
		{coarse, time.Second, 9 * time.Second, "election: TTL 1s is too short for margin 9s: leadership could be trusted for 0s only; gridkv: TTL 1s: want 10s to 24h0m0s: kv: invalid request; use a TTL of at least 12s"},
		{coarse, 25 * time.Hour, time.Second, "election: margin 1s is too small for TTL 25h0m0s: clocks that differ and a busy machine need at least 29m42.229s; gridkv: TTL 25h0m0s: want 10s to 24h0m0s: kv: invalid request"},
		{memkv.New(), 80 * time.Millisecond, 51 * time.Millisecond, "election: margin 51ms is too small for TTL 80ms: clocks that differ and a busy machine need at least 52ms"},
		{memkv.New(), 10 * time.Millisecond, 51 * time.Millisecond, "election: TTL 10ms is too short for margin 51ms: leadership could be trusted for 0s only; use a TTL of at least 90ms with a margin of 52ms, which grows with the TTL"},
	} {
		_, err := New(c.store, "billing", &Options{TTL: c.ttl, Margin: c.margin})
		require.EqualError(t, err, c.says)
		if _, refused := c.store.Lifetime(c.ttl); refused != nil {
			require.ErrorIs(t, err, kv.ErrInvalid)
		}
	}
	for _, works := range []Options{
		{TTL: 10 * time.Second}, {TTL: 10 * time.Second, Margin: 249 * time.Millisecond}, {TTL: 12 * time.Second, Margin: 9 * time.Second},
	} {
		_, err := New(coarse, "billing", &works)
		require.NoError(t, err, "what the errors say")
	}
	_, err := New(memkv.New(), "billing", &Options{TTL: 90 * time.Millisecond, Margin: 52 * time.Millisecond})
	require.NoError(t, err)
}

func TestTheLeastTTLThatAStoreTakesIsFound(t *testing.T) {
	for _, least := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 1234 * time.Millisecond, 10 * time.Second, time.Hour} {
		got, known := leastTaken(grid{memkv.New(), least, 24 * time.Hour}, time.Millisecond)
		require.True(t, known)
		require.Equal(t, least, got)
	}
	_, known := leastTaken(grid{memkv.New(), time.Second, time.Minute}, time.Hour)
	require.False(t, known)
	_, known = leastTaken(grid{memkv.New(), time.Hour, time.Minute}, time.Millisecond)
	require.False(t, known, "it takes none")
}

func TestBackoffGrowsToItsBoundAndNeverSpins(t *testing.T) {
	b := backoff{least: 10 * time.Millisecond, most: time.Second, jitter: rand.N[time.Duration]}
	for range 1000 {
		p := b.pause()
		require.GreaterOrEqual(t, p, 5*time.Millisecond)
		require.LessOrEqual(t, p, time.Second)
	}
	require.GreaterOrEqual(t, b.pause(), time.Second/2)
	b.reset()
	require.LessOrEqual(t, b.pause(), 10*time.Millisecond)
}

func TestBootClockRuns(t *testing.T) {
	a := bootClock()
	time.Sleep(20 * time.Millisecond)
	require.GreaterOrEqual(t, bootClock()-a, 20*time.Millisecond)
}

// Invariant 3: suspend counts.
func TestATermIsFoundDeadAfterASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		c, err := New(memkv.New(), "billing", &Options{TTL: 10 * time.Second})
		require.NoError(t, err)
		epoch := time.Now()
		c.clock.read = func() (mono, boot time.Duration) {
			return time.Since(epoch), time.Since(epoch) + time.Duration(asleep.Load())
		}
		suspend := func() { asleep.Add(int64(9 * time.Second)) }

		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		require.Equal(t, 9*time.Second, c.Status().Remaining)
		suspend()
		require.Equal(t, RoleIdle, c.Status().Role, "by the clock, and it changes nothing")
		require.ErrorIs(t, term.Err(), ErrLost, "synchronously")
		require.NoError(t, term.Resign(t.Context()))

		term, err = c.Campaign(t.Context())
		require.NoError(t, err)
		suspend()
		require.ErrorIs(t, term.Context().Err(), context.Canceled, "so does its context")
		require.ErrorIs(t, context.Cause(term.Context()), ErrLost)
		require.NoError(t, term.Resign(t.Context()))

		term, err = c.Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(5 * c.pace.tick / 2)
		suspend()
		woke := time.Now()
		<-term.Context().Done()
		require.LessOrEqual(t, time.Since(woke), c.pace.tick, "and who only waits is told soon")
		require.NoError(t, term.Resign(t.Context()))
	})
}
