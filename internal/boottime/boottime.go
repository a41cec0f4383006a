// Package boottime reads one clock that all processes of a host share and that
// goes on while the system is suspended: CLOCK_BOOTTIME on Linux. Elsewhere it
// is the wall clock, which may be set.
//
// Its readings mean something to processes of the same host and time namespace
// only.
package boottime

import "time"

// Now returns what Clock does, and panics if the kernel refuses that.
func Now() time.Duration {
	now, err := Clock()
	if err != nil {
		panic("boottime: " + err.Error())
	}
	return now
}

// A Converter turns instants of Go's clock, which stands still during a
// suspend, into readings of the boot clock. It may err on the early side, when
// the system was suspended in between, never on the late side.
type Converter struct {
	mono time.Time
	boot time.Duration
}

// NewConverter returns a converter for instants from now on.
func NewConverter() *Converter {
	c := &Converter{}
	c.reset()
	return c
}

// Convert returns the boot clock's reading at t. The two clocks are related as
// they were when the previous call was made: what happened since, a suspend
// say, makes the answer too early, and the next one right again. So call it once
// for each new instant, and with instants that derive from readings taken since
// the previous call.
func (c *Converter) Convert(t time.Time) time.Duration {
	at := c.boot + t.Sub(c.mono)
	c.reset()
	return at
}

func (c *Converter) reset() {
	// The boot clock first: a pause in between makes the answers too early. Again
	// if there was one.
	for range 1000 {
		c.boot = Now()
		c.mono = time.Now()
		if Now()-c.boot < 50*time.Microsecond {
			return
		}
	}
}
