package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// workerVariable makes this program a worker.
const workerVariable = "ELECTION_BENCH_WORKER"

// A process is a worker: this program, started again.
type process struct {
	in      io.WriteCloser
	orders  *json.Encoder
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the worker's last notice is read
	stopped bool
}

// startWorker starts a worker, whose notices go to heard. The worker ends with the
// stage at the latest.
func startWorker(st *stage, s seat, heard func(*process, notice)) (*process, error) {
	p := &process{ended: make(chan struct{})}
	out, err := p.start(st)
	if err != nil {
		return nil, err
	}
	p.orders = json.NewEncoder(p.in)
	go func() {
		defer close(p.ended)
		for notices := json.NewDecoder(out); ; {
			var n notice
			if err := notices.Decode(&n); err != nil {
				return
			}
			heard(p, n)
		}
	}()
	return p, p.orders.Encode(s)
}

func (p *process) start(st *stage) (io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	cmd.Stderr = os.Stderr
	testenv.Guard(st, cmd)
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd = cmd
	return out, cmd.Start()
}

func (p *process) order(o order) error {
	if err := p.orders.Encode(o); err != nil {
		return fmt.Errorf("bench: a worker cannot be told to %s: %w", o.Do, err)
	}
	return nil
}

// stop and proceed send SIGSTOP and SIGCONT.
func (p *process) stop() error {
	p.stopped = true
	return p.cmd.Process.Signal(syscall.SIGSTOP)
}

func (p *process) proceed() error {
	p.stopped = false
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// kill ends the worker by SIGKILL.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	p.wait()
	return err
}

func (p *process) wait() {
	<-p.ended
	_ = p.cmd.Wait() // says how it ended
}

// end ends the worker: when nobody gives orders any more it leaves by itself, and
// what its candidates held is left to fade. If it takes long it is killed.
func (p *process) end() {
	p.in.Close()
	if p.stopped {
		_ = p.proceed()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = p.cmd.Process.Kill()
		}
	})()
	p.wait()
}
