package paxoskv

import (
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
)

// A clock measures time in two ways. What grants others their time must not run
// fast, so slow counts what both of the host's clocks agree has passed; what counts
// its own time must not run slow, so fast counts what either of them says.
type clock struct {
	read func() (mono, boot time.Duration)

	mu         sync.Mutex
	mono, boot time.Duration
	fast, slow time.Duration
}

func newClock(read func() (mono, boot time.Duration)) *clock {
	if read == nil {
		start := time.Now()
		read = func() (mono, boot time.Duration) { return time.Since(start), boottime.Now() }
	}
	c := &clock{read: read}
	c.mono, c.boot = read()
	return c
}

// now returns both readings. Neither goes back.
func (c *clock) now() (fast, slow time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, boot := c.read()
	dm, db := max(0, mono-c.mono), max(0, boot-c.boot)
	c.mono, c.boot = mono, boot
	c.fast += max(dm, db)
	c.slow += min(dm, db)
	return c.fast, c.slow
}
