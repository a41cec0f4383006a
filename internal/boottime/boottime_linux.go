package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the system started, suspend included.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("boottime: clock_gettime(CLOCK_BOOTTIME): " + err.Error()) // in Linux since 2.6.39
	}
	return time.Duration(ts.Nano())
}
