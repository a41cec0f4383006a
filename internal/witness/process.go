package witness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/electkv/election/internal/history"
)

// A Process is the process of a candidate, seen from outside.
type Process struct {
	Cmd   *exec.Cmd
	Stdin io.WriteCloser // for orders; its end tells the process that it is not heard any more
	said  chan struct{}  // closed when it has said its last word
}

// Again returns a command that runs this program again. The environment variable called name
// holds its part, in JSON.
func Again(name string, part any) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path) //nolint:noctx // it ends in order
	cmd.Env = append(os.Environ(), name+"="+string(text))
	return cmd, nil
}

// Start starts a command, and gives the events that it tells on its standard output to note.
func Start(cmd *exec.Cmd, note func(history.Event)) (*Process, error) {
	p := &Process{Cmd: cmd, said: make(chan struct{})}
	var err error
	if p.Stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.said)
		Hear(stdout, note)
	}()
	return p, nil
}

// Order gives the process an order, a line on its standard input.
func (p *Process) Order(line string) error {
	_, err := fmt.Fprintln(p.Stdin, line)
	return err
}

// Signal sends a signal. That the process has ended already is no error: only Wait
// frees its id, so the signal goes to nobody else. Do not call it after Wait.
func (p *Process) Signal(sig os.Signal) { _ = p.Cmd.Process.Signal(sig) }

// Wait waits until the process has ended, and note has all that it has told. It returns how the
// process ended, as [exec.Cmd.Wait] does.
func (p *Process) Wait() error {
	<-p.said
	return p.Cmd.Wait()
}
