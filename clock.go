package election

import (
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/machine"
)

// A clock reads a host's two clocks.
type clock struct {
	epoch time.Time                         // from which the monotonic one counts
	read  func() (mono, boot time.Duration) // of another host; nil for this one
}

// now returns what the clocks show. It reads the monotonic one first: that is the one by
// which a deadline is told, which is then no later than the boot clock has it, however long
// the host takes between the two.
func (c clock) now() machine.Instant {
	if c.read != nil {
		mono, boot := c.read()
		return machine.Instant{Mono: mono, Boot: boot}
	}
	mono := time.Since(c.epoch)
	return machine.Instant{Mono: mono, Boot: bootClock()}
}

// with returns what the clocks show, where boot is a reading of this host's boot clock that
// was just taken.
func (c clock) with(boot time.Duration) machine.Instant {
	if c.read != nil {
		return c.now()
	}
	return machine.Instant{Mono: time.Since(c.epoch), Boot: boot}
}

// bootClock reads the clock that goes on through a suspend. If the kernel refuses it, the
// reading is always zero, and the monotonic clock decides alone. Where it is the wall clock,
// as on macOS, a leader may step down without need if somebody sets that forward.
func bootClock() time.Duration {
	boot, _ := boottime.Clock()
	return boot
}
