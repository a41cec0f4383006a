package filekv

import (
	"time"

	"github.com/electkv/election/internal/boottime"
)

// sinceBoot reads CLOCK_BOOTTIME, which counts time asleep and cannot be set.
func sinceBoot() (time.Duration, error) { return boottime.Clock() }

// clockName names what readings of sinceBoot can be compared within. It is asked each
// time: a process that is restored from a checkpoint wakes up on another clock.
func clockName() (string, error) {
	frame, err := boottime.Here()
	return frame.String(), err
}
