//go:build unix

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a server may take until it is healthy. It is long,
// for a machine that compiles at the same time.
const startTimeout = 90 * time.Second

// A Server is a server process that a test has for itself. Its methods fail the
// test if they cannot do what they say. They may be called from any goroutine
// that may fail the test, one at a time for one server.
type Server struct {
	t       testing.TB // nil for a shared server
	name    string
	path    string
	args    []string
	port    *port   // where clients connect
	more    []*port // where its peers do
	dir     string  // holds data and the log
	cluster *Cluster

	// healthy asks the server at addr whether it serves.
	healthy func(ctx context.Context, addr string) error

	mu     sync.Mutex
	cmd    *exec.Cmd // nil while killed
	paused bool
}

// newServer makes a server that is not started yet, with a folder of its own.
func newServer(name, path string, healthy func(context.Context, string) error) (*Server, error) {
	g, err := theGuard()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(g.dir, name+"-")
	if err != nil {
		return nil, err
	}
	p, err := takePort()
	if err != nil {
		return nil, err
	}
	return &Server{name: name, path: path, port: p, dir: dir, healthy: healthy}, nil
}

func startOwn(t testing.TB, build func() (*Server, error)) *Server {
	t.Helper()
	s, err := build()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	s.own(t)
	s.must(s.start())
	return s
}

// own makes the server end with the test.
func (s *Server) own(t testing.TB) {
	s.t = t
	t.Cleanup(func() {
		s.kill()
		if err := os.RemoveAll(s.dir); err != nil {
			t.Errorf("testenv: %v", err)
		}
		s.port.release()
		for _, p := range s.more {
			p.release()
		}
	})
}

// Addr returns the address for clients, as host:port. It stays the same across
// restarts.
func (s *Server) Addr() string { return s.port.addr() }

// Pause stops the process where it stands, as SIGSTOP does: its connections stay
// open, new ones are accepted by the kernel, and nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.must(s.signal(syscall.SIGSTOP))
}

// Continue lets a paused process go on.
func (s *Server) Continue() {
	s.t.Helper()
	s.must(s.signal(syscall.SIGCONT))
}

// Kill ends the process with SIGKILL and waits until it is gone. Killing it
// twice is fine.
func (s *Server) Kill() {
	s.t.Helper()
	s.kill()
}

// Restart starts the server again, on the same ports and with the data that it
// has, and waits until it is healthy. It kills it first if it runs. A node
// whose cluster has no majority is not waited for further than that it accepts
// connections.
func (s *Server) Restart() {
	s.t.Helper()
	s.kill()
	s.must(s.start())
}

// Wipe removes all data of a killed server, so that Restart starts it afresh. A
// node of a cluster that was wiped cannot come back: its peers remember it.
func (s *Server) Wipe() {
	s.t.Helper()
	if s.running() {
		s.t.Fatalf("testenv: wipe of %s, which has not been killed", s.name)
	}
	s.must(os.RemoveAll(s.dataDir()))
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// running reports whether the process can answer: neither killed nor paused.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil && !s.paused
}

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("%s to %s, which has been killed", sig, s.name)
	}
	s.paused = sig == syscall.SIGSTOP
	return s.cmd.Process.Signal(sig)
}

func (s *Server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	// Errors say that the process has ended already, or how.
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd, s.paused = nil, false
}

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
	if err := os.MkdirAll(s.dataDir(), 0o755); err != nil {
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
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{held}
	cmd.SysProcAttr = g.attributes()

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmd.Start(); err != nil {
		alive.Close()
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd = cmd
	return alive, nil
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

// must fails the test on an error.
func (s *Server) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatalf("testenv: %v", err)
	}
}
