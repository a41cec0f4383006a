//go:build unix

package guard

import (
	"os"
	"syscall"
	"time"
)

// Role is the first argument that makes this program a guard.
const Role = "__guard"

// What the guard inherits besides standard input, output and error: its ends of
// the two pipes, and files that it holds open.
const (
	ordersFD  = 3
	reportsFD = 4
	holdsFD   = 5
)

// A Spec says what to run. Times are boottime readings.
type Spec struct {
	Path       string        // of the executable
	Args       []string      // with the command's name in Args[0]
	Env        []string      // the whole environment
	Grace      time.Duration // from SIGTERM to SIGKILL
	Until      time.Duration // how long to trust, unless extended
	Foreground bool          // give the command the terminal at standard input
	Holds      int           // open files to keep from the command; set by Start
}

// An order is what elect tells the guard, one a line. Exactly one field is set.
type order struct {
	Start  *Spec          `json:"start,omitempty"`  // first, and once
	Until  time.Duration  `json:"until,omitempty"`  // trust goes on until
	Signal syscall.Signal `json:"signal,omitempty"` // for the command's process group
	Stop   bool           `json:"stop,omitempty"`   // SIGTERM now, SIGKILL after the grace
}

// A report is what the guard tells elect.
type report struct {
	Failed  syscall.Errno      `json:"failed,omitempty"`  // the command did not start
	Started int                `json:"started,omitempty"` // its process id
	Gone    bool               `json:"gone,omitempty"`    // the last report: nobody is left
	Status  syscall.WaitStatus `json:"status,omitempty"`  // with Gone: how the command ended
	Expired bool               `json:"expired,omitempty"` // with Gone: it was stopped because trust had run out
}

// self is the path by which this very program is started again, also when its
// file was replaced or removed in the meantime.
func self() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}
