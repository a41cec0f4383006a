//go:build unix

package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/electkv/election/cmd/elect/internal/guard"
	"github.com/electkv/election/internal/history"
)

// A process is a candidate's, seen from the stage.
type process struct {
	who   string
	cmd   *exec.Cmd
	stdin io.Closer // its end tells the candidate that the stage is gone
	read  chan struct{}
}

// start starts a candidate. Its events go to events, which must be read until
// wait has returned.
func start(cmd *exec.Cmd, who string, events chan<- history.Event) (*process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", who, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", who, err)
	}
	cmd.Stderr = os.Stderr
	// Ctrl-C at the terminal is for the stage, which takes the others along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	guard.DieWithParent(cmd.SysProcAttr) // also if asleep
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", who, err)
	}
	p := &process{who: who, cmd: cmd, stdin: stdin, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		for in := json.NewDecoder(stdout); ; {
			var e history.Event
			if in.Decode(&e) != nil { // the process has ended
				return
			}
			events <- e
		}
	}()
	return p, nil
}

// signal sends a signal. That the process has ended already is no error: nobody
// waits for it before wait does, so its id is still its own.
func (p *process) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
}

// end asks the candidate to end, also if it is asleep, kills it if it does not
// within patience, and waits for it.
func (p *process) end(patience time.Duration) {
	p.signal(syscall.SIGCONT)
	p.stdin.Close()
	kill := time.AfterFunc(patience, func() { p.signal(syscall.SIGKILL) })
	defer kill.Stop()
	<-p.read
	_ = p.cmd.Wait() // it may have been killed, and that is all right
}
