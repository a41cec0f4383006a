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

// killAll kills the process group of the command, and then all other descendants: to find them
// takes a while where many processes compete for a processor. Those that it misses because
// others end are found by the next call.
func killAll(group int) {
	signalAll(group, nil, syscall.SIGKILL)
	signalAll(group, everybody(), syscall.SIGKILL)
}

// askAll asks the process group of the command, and all other descendants, to end. SIGCONT lets
// the stopped ones hear it. It looks for all of them before it asks any: what ends hides its
// children for a moment, and they would be asked by nobody.
func askAll(group int) {
	all := everybody()
	signalAll(group, all, syscall.SIGTERM)
	signalAll(group, all, syscall.SIGCONT)
}
