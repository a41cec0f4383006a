//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
)

// An actor is a candidate's process, seen from the stage.
type actor struct {
	*witness.Process
	part  part
	links []*testenv.Proxy
	said  *testenv.Speech // on standard error
	calls *caller         // nil if it is not asked over HTTP

	doom      string // how it is expected to end, if other than by leaving
	lastWords string // which it says then, if any
	gone      bool   // it has been waited for
}

// newActor starts a process. Its events go to note.
func newActor(p part, note func(history.Event), prepare func(*exec.Cmd)) (*actor, error) {
	cmd, err := witness.Again(partVariable, p)
	if err != nil {
		return nil, err
	}
	a := &actor{part: p, said: &testenv.Speech{}}
	cmd.Stderr = a.said
	// It dies with the test process, also if it is asleep.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	prepare(cmd)
	if !p.Asked {
		a.Process, err = witness.Start(cmd, note)
		return a, err
	}
	file, addr, err := newListener()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd.ExtraFiles = []*os.File{file}
	if a.Process, err = witness.Start(cmd, note); err == nil {
		a.calls = newCaller(p, addr, note)
	}
	return a, err
}

// awaitStop waits until all threads have stopped.
func (a *actor) awaitStop() error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, a.Cmd.Process.Pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
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
		a.Signal(syscall.SIGQUIT) // it says where it hangs
		time.AfterFunc(2*time.Second, func() { a.Signal(syscall.SIGKILL) })
	})
	err := a.Wait()
	kill.Stop()
	a.calls.end()
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
