package observer

import (
	"time"

	"github.com/electkv/election/internal/boottime"
)

// An instant is a moment on the two clocks of this host.
type instant struct {
	mono time.Duration // stands still while the host is suspended
	boot time.Duration // goes on
}

// since returns the time from earlier to t, the smaller of the two clocks' answers:
// what opens a right over another's may only err on the slow side.
func (t instant) since(earlier instant) time.Duration {
	return min(t.mono-earlier.mono, t.boot-earlier.boot)
}

// hostClock returns a reader of this host's clocks.
func hostClock() func() (mono, boot time.Duration) {
	start := time.Now()
	return func() (mono, boot time.Duration) {
		return time.Since(start), boottime.Now()
	}
}
