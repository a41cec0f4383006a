package election

import "time"

// An instant is a moment on this host's clocks. Both readings are taken, because
// Go's monotonic clock stands still while a Linux system is suspended.
type instant struct {
	mono time.Time     // Go's clock, with its monotonic reading
	boot time.Duration // a clock that goes on through suspend; see bootClock
}

// now reads both clocks.
func now() instant {
	return instant{mono: time.Now(), boot: bootClock()}
}

// since returns the time from earlier to t, the larger of the two clocks'
// answers: whose right ends with time may only err on the fast side.
func (t instant) since(earlier instant) time.Duration {
	return max(t.mono.Sub(earlier.mono), t.boot-earlier.boot)
}
