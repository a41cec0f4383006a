//go:build unix

package guard

import (
	"os"
	"os/signal"
	"syscall"
)

// endings gets a value after one or more children have ended or stopped.
func endings() chan os.Signal {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	return ended
}

// collect takes the children that have ended, started by this process or not, and
// tells of each, and of each that has stopped. It does not wait. It reports whether
// a child is left. Until it has taken a child, the child's process id is its own.
func collect(tell func(pid int, status syscall.WaitStatus)) (left bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return false
		case pid == 0:
			return true
		default:
			tell(pid, status)
		}
	}
}
