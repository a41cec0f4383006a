//go:build unix

package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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
	env     []string      // besides what every server gets
	clock   string        // the file of its wall clock's offset, if it has one
	offset  time.Duration // what the file says
	account *account      // whom the process runs as
	family  bool          // its children do its work, and SIGQUIT ends it in order

	// seed makes the data folder where there is none. Without it, an empty one is
	// enough.
	seed func(dir string) error

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
		s.finish()
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

// Pause stops the process where it stands, by SIGSTOP, and waits until it has
// stopped: its connections stay open, new ones are accepted by the kernel, and
// nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.must(s.pause())
}

// Continue lets a paused process go on, by SIGCONT.
func (s *Server) Continue() {
	s.t.Helper()
	s.must(s.resume())
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

// must fails the test on an error.
func (s *Server) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatalf("testenv: %v", err)
	}
}
