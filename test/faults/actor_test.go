//go:build linux

package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
)

// An actor is a candidate's process, seen from the stage.
type actor struct {
	part  part
	cmd   *exec.Cmd
	stdin io.WriteCloser // its end tells the process that the stage is gone
	links []*testenv.Proxy
	read  chan struct{}   // closed when it has said its last word
	said  *testenv.Speech // on standard error

	doom      string // how it is expected to end, if other than by leaving
	lastWords string // which it says then, if any
	gone      bool   // it has been waited for
}

// newActor starts a process. Its events go to note.
func newActor(p part, note func(history.Event), prepare func(*exec.Cmd)) (*actor, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	a := &actor{part: p, cmd: exec.Command(path), read: make(chan struct{}), said: &testenv.Speech{}}
	a.cmd.Env = append(os.Environ(), partVariable+"="+string(text))
	a.cmd.Stderr = a.said
	// It dies with the test process, also if it is asleep.
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	prepare(a.cmd)
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.read)
		for in := json.NewDecoder(stdout); ; {
			var e history.Event
			if in.Decode(&e) != nil { // the process has ended
				return
			}
			note(e)
		}
	}()
	return a, nil
}

// tell gives an order; see obey.
func (a *actor) tell(order string) error {
	_, err := io.WriteString(a.stdin, order+"\n")
	return err
}

// signal sends a signal. That the process has ended already is no error: nobody
// waits for it before end does, so its id is still its own.
func (a *actor) signal(sig syscall.Signal) { _ = a.cmd.Process.Signal(sig) }

// awaitStop waits until all threads have stopped.
func (a *actor) awaitStop() error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, a.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// end waits until the process has ended, and kills it if it has not within
// patience. It returns what was wrong with the end, if anything.
func (a *actor) end(patience time.Duration) error {
	if a.gone {
		return nil
	}
	a.gone = true
	var late atomic.Bool
	kill := time.AfterFunc(patience, func() {
		late.Store(true)
		a.signal(syscall.SIGQUIT) // it says where it hangs
		time.AfterFunc(2*time.Second, func() { a.signal(syscall.SIGKILL) })
	})
	<-a.read
	err := a.cmd.Wait()
	kill.Stop()
	who := strings.Join(a.part.Who, ", ")
	switch text := a.said.String(); {
	case strings.Contains(text, "DATA RACE"):
		return fmt.Errorf("%s has a data race:\n%s", who, text)
	case late.Load():
		return fmt.Errorf("%s did not end within %v:\n%s", who, patience, text)
	case a.doom != "" && (err == nil || err.Error() != a.doom || !strings.Contains(text, a.lastWords)):
		return fmt.Errorf("%s ended with %v instead of %s, %s:\n%s", who, err, a.doom, a.lastWords, text)
	case a.doom == "" && err != nil:
		return fmt.Errorf("%s ended with %w:\n%s", who, err, text)
	}
	return nil
}
