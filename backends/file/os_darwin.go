package filekv

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_MONOTONIC, which counts time asleep on this system and
// cannot be set.
func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// clockName names the boot of the host.
func clockName() (string, error) {
	return unix.Sysctl("kern.bootsessionuuid")
}
