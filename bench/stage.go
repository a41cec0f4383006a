package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
)

// A stage is where servers of testenv run while no test does: it takes the place of a
// test. What is started on it ends with close.
type stage struct {
	testing.TB // nil: what testenv has no need of

	mu       sync.Mutex
	cleanups []func()
	failures []error
}

func (*stage) Helper() {}

func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *stage) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Errorf(format, args...))
}

func (s *stage) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (s *stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) > 0
}

// Fatalf ends the goroutine, as that of a test.
func (s *stage) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// try calls f on a goroutine that may be ended by Fatalf, and returns what went wrong.
func (s *stage) try(f func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

// close ends all that was started, the last first.
func (s *stage) close() error {
	return s.try(func() {
		for {
			s.mu.Lock()
			n := len(s.cleanups)
			if n == 0 {
				s.mu.Unlock()
				return
			}
			f := s.cleanups[n-1]
			s.cleanups = s.cleanups[:n-1]
			s.mu.Unlock()
			f()
		}
	})
}
