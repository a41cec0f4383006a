package paxoskv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatGrantsCountsSlowlyAndWhatTrustsCountsFast(t *testing.T) {
	var mono, boot time.Duration
	c := newClock(func() (time.Duration, time.Duration) { return mono, boot })
	step := func(m, b time.Duration) (fast, slow time.Duration) {
		mono, boot = mono+m, boot+b
		return c.now()
	}
	fast, slow := step(1, 1)
	require.Equal(t, []time.Duration{1, 1}, []time.Duration{fast, slow})
	fast, slow = step(1, 11) // it slept
	require.Equal(t, []time.Duration{12, 2}, []time.Duration{fast, slow})
	fast, slow = step(11, 1) // each clock may be the slow one
	require.Equal(t, []time.Duration{23, 3}, []time.Duration{fast, slow})
	fast, slow = step(1, -5) // nothing goes back
	require.Equal(t, []time.Duration{24, 3}, []time.Duration{fast, slow})
}
