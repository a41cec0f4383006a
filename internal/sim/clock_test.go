package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/sim"
)

func TestASuspendStopsOneClockOnly(t *testing.T) {
	c := sim.Clock{Sleeps: []sim.Window{{From: 10 * time.Second, To: 15 * time.Second}}}
	require.Equal(t, 9*time.Second, c.Mono(9*time.Second))
	require.Equal(t, 10*time.Second, c.Mono(12*time.Second))
	require.Equal(t, 15*time.Second, c.Mono(20*time.Second))
	require.Equal(t, 20*time.Second, c.Boot(20*time.Second))
	c.Deaf = true
	require.Equal(t, 15*time.Second, c.Boot(20*time.Second))
}

func TestASpanEndsOnTheFasterClock(t *testing.T) {
	c := sim.Clock{Sleeps: []sim.Window{{From: 10 * time.Second, To: 15 * time.Second}}}
	require.Equal(t, 17*time.Second, c.After(8*time.Second, 9*time.Second))
	c.Deaf = true
	require.Equal(t, 22*time.Second, c.After(8*time.Second, 9*time.Second))
}

func TestARateIsKeptToTheNanosecond(t *testing.T) {
	for _, rate := range []sim.PPM{-200_000, -10_000, -1, 0, 7, 10_000, 200_000} {
		c := sim.Clock{Rate: rate}
		for _, at := range []time.Duration{0, 1, 999_999, time.Second, 20 * time.Hour} {
			require.InDelta(t, float64(at)*(1+float64(rate)/1e6), float64(c.Mono(at)), 1.5)
			require.GreaterOrEqual(t, c.Boot(c.When(c.Boot(at))), c.Boot(at))
			require.LessOrEqual(t, c.When(c.Boot(at)), at)
			span := 9 * time.Second
			end := c.After(at, span)
			require.GreaterOrEqual(t, c.Mono(end)-c.Mono(at), span)
			require.Less(t, c.Mono(end-1)-c.Mono(at), span)
		}
	}
}
