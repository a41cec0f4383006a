//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// start starts the process and waits until it is healthy.
func (s *Server) start() error {
	alive, err := s.launch()
	if err != nil {
		return err
	}
	defer alive.Close()
	return s.await(alive)
}

// launch starts the process. The pipe that it returns ends when the process
// does: that shows an early end without a goroutine that waits for it.
func (s *Server) launch() (*os.File, error) {
	g, err := theGuard()
	if err != nil {
		return nil, err
	}
	if err := s.furnish(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	alive, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()

	cmd := exec.Command(s.path, s.args...)
	cmd.Dir = s.dataDir()
	// Nothing of the environment, so that no setting of the user's reaches it.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C"}, s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{held}
	cmd.SysProcAttr = g.attributes()
	s.account.attributes(cmd.SysProcAttr)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		alive.Close()
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd = cmd
	return alive, nil
}

// furnish sees that there is a data folder, and that the server may use what is
// its own.
func (s *Server) furnish() error {
	if _, err := os.Stat(s.dataDir()); err == nil {
		return nil
	}
	if s.seed == nil {
		if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
			return err
		}
		return s.account.give(s.dir)
	}
	if err := s.account.give(s.dir); err != nil {
		return err
	}
	return s.seed(s.dataDir())
}

// await waits until the server is healthy. It fails when alive ends, or after
// startTimeout.
func (s *Server) await(alive *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := s.check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s is not healthy after %v: %w\n%s", s.name, startTimeout, err, s.logTail())
		}
		if ended(alive, 20*time.Millisecond) {
			return fmt.Errorf("%s ended by itself\n%s", s.name, s.logTail())
		}
	}
}

// check asks once whether the server serves, as far as it can.
func (s *Server) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if s.cluster != nil && !s.cluster.hasMajority() {
		return accepts(ctx, s.Addr())
	}
	return s.healthy(ctx, s.Addr())
}

// ended waits a while for the process at the other end of the pipe to end.
func ended(alive *os.File, wait time.Duration) bool {
	if err := alive.SetReadDeadline(time.Now().Add(wait)); err != nil {
		time.Sleep(wait)
		return false
	}
	_, err := alive.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// logTail returns the end of the server's log.
func (s *Server) logTail() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Sprintf("the end of its log:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
}

func (s *Server) pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("pause of %s, which has been killed", s.name)
	}
	if s.paused {
		return nil
	}
	stop := stopAlone
	if s.family {
		stop = stopFamily
	}
	if err := stop(s.cmd.Process.Pid); err != nil {
		return fmt.Errorf("pause %s: %w", s.name, err)
	}
	s.paused = true
	return nil
}

// stopAlone stops a child that has no children.
func stopAlone(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return os.NewSyscallError("kill", err)
	}
	return awaitStop(pid)
}

// awaitStop waits until a child has stopped: the signal is sent to one of its
// threads, and the others run on for a moment.
func awaitStop(pid int) error {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case status.Stopped():
			return nil
		default:
			return errors.New("the process has ended")
		}
	}
}

func (s *Server) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("continuation of %s, which has been killed", s.name)
	}
	if err := s.proceed(); err != nil {
		return fmt.Errorf("continue %s: %w", s.name, err)
	}
	s.paused = false
	return nil
}

// proceed sends SIGCONT. The caller holds the lock.
func (s *Server) proceed() error {
	if s.family {
		return resumeFamily(s.cmd.Process.Pid)
	}
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

// finish ends the process for good. A family is asked to end, if it can hear
// that: killed, it would leave shared memory behind.
func (s *Server) finish() {
	s.mu.Lock()
	if s.family && s.cmd != nil {
		pid := s.cmd.Process.Pid
		if err := errors.Join(signalAll([]int{pid}, syscall.SIGQUIT), s.proceed(), awaitStates([]int{pid}, gone)); err == nil {
			_ = s.cmd.Wait() // says only that the signal ended it
			s.cmd, s.paused = nil, false
		}
	}
	s.mu.Unlock()
	s.kill()
}

// kill kills the process, and children that it has: those of a Redis that copies its data for a
// replica would go on writing into its folder for a while.
func (s *Server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	if err := killFamily(s.cmd.Process.Pid); err != nil {
		s.t.Errorf("testenv: kill %s: %v", s.name, err)
	}
	// The error of Wait says how the process ended.
	if err := s.cmd.Wait(); !killed(s.cmd.ProcessState) {
		s.t.Logf("testenv: %s had ended by itself (%v)\n%s", s.name, err, s.logTail())
	}
	s.cmd, s.paused = nil, false
}

func killed(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
