package sim

import (
	"sort"
	"time"
)

// PPM is how many millionths a clock runs faster than true; slower if negative.
type PPM int64

// local returns what a clock shows after the true time d.
func (p PPM) local(d time.Duration) time.Duration {
	const million = 1_000_000
	return d + d/million*time.Duration(p) + d%million*time.Duration(p)/million
}

// A Clock is a host's two clocks, as functions of the true time.
type Clock struct {
	Rate   PPM
	Sleeps []Window // in order, apart from each other
	// Deaf is set if the host has no clock that goes on through a suspend.
	Deaf bool
}

// A Window is a stretch of true time, its end not included.
type Window struct{ From, To time.Duration }

// Mono returns what the monotonic clock shows at the true time t. It stands
// still while the host is suspended.
func (c Clock) Mono(t time.Duration) time.Duration {
	awake := t
	for _, s := range c.Sleeps {
		if t > s.From {
			awake -= min(t, s.To) - s.From
		}
	}
	return c.Rate.local(awake)
}

// Boot returns what the clock shows that goes on through a suspend.
func (c Clock) Boot(t time.Duration) time.Duration {
	if c.Deaf {
		return c.Mono(t)
	}
	return c.Rate.local(t)
}

// When returns the first true time at which the boot clock shows at least boot.
func (c Clock) When(boot time.Duration) time.Duration {
	return c.first(0, boot, func(t time.Duration) bool { return c.Boot(t) >= boot })
}

// After returns the first true time at which one of the clocks has gone on by
// span since the true time t.
func (c Clock) After(t, span time.Duration) time.Duration {
	mono, boot := c.Mono(t), c.Boot(t)
	return c.first(t, span, func(t time.Duration) bool {
		return c.Mono(t)-mono >= span || c.Boot(t)-boot >= span
	})
}

// first returns the first time from t on for which reached holds, which it does
// once a span has passed on a clock.
func (c Clock) first(t, span time.Duration, reached func(time.Duration) bool) time.Duration {
	far := max(span, 0)*2 + 1
	for _, s := range c.Sleeps {
		far += s.To - s.From
	}
	return t + time.Duration(sort.Search(int(far), func(d int) bool { return reached(t + time.Duration(d)) }))
}
