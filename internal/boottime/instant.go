package boottime

import "time"

// An Instant is a moment on two clocks: Go's, which cannot be set and which stands still while
// the system is suspended, and the boot clock.
type Instant struct {
	Mono time.Time
	Boot time.Duration
}

// Read returns the present instant.
func Read() Instant { return Instant{time.Now(), Now()} }

// Since returns how long ago an instant was, by the clock that has it longer ago.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono.Sub(earlier.Mono), i.Boot-earlier.Boot)
}
