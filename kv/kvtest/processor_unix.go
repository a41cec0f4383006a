//go:build unix

package kvtest

import (
	"syscall"
	"time"
)

// processorTime returns how long this process has kept processors busy.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
