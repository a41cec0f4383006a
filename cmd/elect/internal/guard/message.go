//go:build unix

package guard

import (
	"encoding/json"
	"os"
	"slices"
	"syscall"
	"time"
)

// Role is the first argument that makes this program a guard. What to run when
// leadership is lost, the command's path and its arguments follow, and its
// environment is the guard's own: a kernel hands on every byte.
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
	Patience   time.Duration // after the grace, with a guard that does not do its duty
	Foreground bool          // give the command the terminal at standard input
	OnLost     string        // for a shell, when the command is stopped or fails; or nothing

	// Release is what the guard's release function gets if this process dies; nothing
	// leaves the lease to its TTL.
	Release json.RawMessage
}

// A charge is what a guard has to know before it starts the command.
type charge struct {
	Grace      time.Duration `json:"grace"`
	Until      time.Duration `json:"until"`
	Foreground bool          `json:"foreground"`
	Holds      int           `json:"holds"` // open files to keep from the command

	Release json.RawMessage `json:"release,omitempty"`
}

// An order is what elect tells the guard, one per line. All are short: what is
// written to the pipe is written whole.
type order struct {
	Start   *charge          `json:"start,omitempty"`   // in the first, and only there
	Until   time.Duration    `json:"until,omitempty"`   // trust goes on until
	Signals []syscall.Signal `json:"signals,omitempty"` // for the command's process group
	Stop    bool             `json:"stop,omitempty"`    // SIGTERM now, SIGKILL after the grace
}

// add has the command get a signal, once if it has to wait for it several times.
func (o *order) add(sig syscall.Signal) {
	if !slices.Contains(o.Signals, sig) {
		o.Signals = append(o.Signals, sig)
	}
}

// A report is what the guard tells elect. There are two at most, so that the pipe
// always has room for them.
type report struct {
	Failed  syscall.Errno      `json:"failed,omitempty"`  // the command did not start
	Started int                `json:"started,omitempty"` // its process id
	Gone    bool               `json:"gone,omitempty"`    // the last report: nobody is left
	Status  syscall.WaitStatus `json:"status,omitempty"`  // with Gone: how the command ended
	Expired bool               `json:"expired,omitempty"` // with Gone: it was stopped, or not started, because trust had run out
	OnLost  string             `json:"onLost,omitempty"`  // with Gone: how that ended, if it was run
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
