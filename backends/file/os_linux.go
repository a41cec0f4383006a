package filekv

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/boottime"
)

// sinceBoot reads CLOCK_BOOTTIME, which counts time asleep and cannot be set.
func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// clockName names what readings of sinceBoot can be compared within. It is asked each
// time: a process that is restored from a checkpoint wakes up on another clock.
func clockName() (string, error) {
	frame, err := boottime.Here()
	return frame.String(), err
}
