package election

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
)

func TestTrustEndsASpanAfterTheSendOnTheFasterClock(t *testing.T) {
	start := time.Now()
	at := func(mono, boot time.Duration) instant { return instant{start.Add(mono), boot} }
	tr := trust{sent: at(0, 100*time.Second), span: 9 * time.Second}

	require.Equal(t, 9*time.Second, tr.left(at(0, 100*time.Second)))
	require.Equal(t, 4*time.Second, tr.left(at(5*time.Second, 105*time.Second)))
	require.Equal(t, -time.Second, tr.left(at(0, 110*time.Second)), "suspended: the monotonic clock stood still")
	require.Equal(t, 4*time.Second, tr.left(at(5*time.Second, 40*time.Second)), "a clock that went back gives no time back")
	require.Equal(t, start.Add(9*time.Second), tr.until())
}

func TestTheMarginPaysForDriftAndReaction(t *testing.T) {
	for _, ttl := range []time.Duration{150 * time.Millisecond, time.Second, 15 * time.Second, time.Hour} {
		p, err := newPace(ttl, 0)
		require.NoError(t, err)
		T, G := float64(ttl), float64(p.margin)
		require.LessOrEqual(t, (T-G)/(1-drift)+float64(reaction), T/(1+drift)+1e6*T/1e9,
			"TTL %v: a leader with a slow clock stops before a store with a fast one lets another in", ttl)
		require.LessOrEqual(t, p.refresh+2*p.attempt+p.margin, ttl, "TTL %v: a refresh can be tried twice", ttl)
		require.GreaterOrEqual(t, p.margin, ttl/10)
	}
}

func TestAMarginThatDoesNotFitIsRefused(t *testing.T) {
	for _, c := range []struct {
		ttl, margin time.Duration
		says        string
	}{
		{15 * time.Second, 100 * time.Millisecond, "margin 100ms is too small for TTL 15s: clocks that differ and a busy machine need at least 348ms"},
		{15 * time.Second, -time.Second, "margin -1s is too small"},
		{10 * time.Second, 9 * time.Second, "TTL 10s is too short for margin 9s: leadership could be trusted for 1s only; use a TTL of at least 12"},
		{10 * time.Millisecond, 0, "TTL 10ms is too short"},
		{-time.Second, 0, "TTL -1s is negative"},
	} {
		_, err := newPace(c.ttl, c.margin)
		require.ErrorContains(t, err, c.says)
	}
	_, err := newPace(12*time.Second, 9*time.Second)
	require.NoError(t, err, "what the error recommends is right")
	for margin := 50 * time.Millisecond; margin < time.Minute; margin += 7 * time.Millisecond {
		_, err = newPace(max(leastTTL(margin), margin), margin)
		if margin >= leastMargin(leastTTL(margin)) {
			require.NoError(t, err, margin)
		}
	}
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
		c.clock = func() instant {
			return instant{time.Now(), time.Since(epoch) + time.Duration(asleep.Load())}
		}
		suspend := func() { asleep.Add(int64(9 * time.Second)) }

		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		suspend()
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
