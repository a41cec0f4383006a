package election

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADeadlineIsNoLaterOnTheMonotonicClockThanOnTheBootClock(t *testing.T) {
	t.Parallel()
	c := clock{epoch: time.Now()}
	ahead, least := time.Duration(math.MinInt64), time.Duration(math.MaxInt64)
	for range 100_000 {
		boot := bootClock() // and so too early, next to the other
		ahead = max(ahead, boot-time.Since(c.epoch))
		now := c.now()
		least = min(least, now.Boot-now.Mono)
	}
	require.GreaterOrEqual(t, least, ahead)
}
