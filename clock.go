package election

import (
	"time"

	"github.com/electkv/election/internal/machine"
)

// newClock returns a reading of this host's two clocks, the monotonic one counted from
// now on.
func newClock(epoch time.Time) func() machine.Instant {
	return func() machine.Instant {
		return machine.Instant{Mono: time.Since(epoch), Boot: bootClock()}
	}
}
