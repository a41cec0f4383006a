package boottime

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of clock_gettime(2).
const clockBoottime = 7

// Clock reads CLOCK_BOOTTIME of clock_gettime(2): the time since the system started, suspend
// included. It does not block. The kernel refuses it before Linux 2.6.39, or by a filter of
// system calls.
func Clock() (time.Duration, error) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", errno)
	}
	return time.Duration(ts.Nano()), nil
}
