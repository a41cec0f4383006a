//go:build unix

package demo

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/electkv/election/cmd/elect/internal/guard"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// start starts a candidate. Its events go to events, which must be read until
// end has returned.
func start(cmd *exec.Cmd, who string, events chan<- history.Event) (*witness.Process, error) {
	cmd.Stderr = os.Stderr
	// Ctrl-C at the terminal is for the stage, which takes the others along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	guard.DieWithParent(cmd.SysProcAttr) // also if asleep
	p, err := witness.Start(cmd, func(e history.Event) { events <- e })
	if err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", who, err)
	}
	return p, nil
}

// end asks the candidate to end, also if it is asleep, kills it if it does not
// within patience, and waits for it.
func end(p *witness.Process, patience time.Duration) {
	p.Signal(syscall.SIGCONT)
	p.Stdin.Close()
	kill := time.AfterFunc(patience, func() { p.Signal(syscall.SIGKILL) })
	defer kill.Stop()
	_ = p.Wait() // it may have been killed, and that is all right
}
