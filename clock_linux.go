package election

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2): like CLOCK_MONOTONIC, but
// it counts the time that the system is suspended.
const clockBoottime = 7

// bootClock reads CLOCK_BOOTTIME, which does not block. If the kernel refuses it, the reading is
// always zero, and the monotonic clock decides alone.
func bootClock() time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
