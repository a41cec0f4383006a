//go:build unix

package testenv

import (
	"bytes"
	"sync"
)

// longestSpeech is more than a process says that has nothing to complain of, in
// bytes.
const longestSpeech = 1 << 20

// A Speech keeps what a process says, up to a mebibyte: it is for an [exec.Cmd]'s
// Stdout and Stderr, and may be read while the process goes on. The zero value is
// empty.
type Speech struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer]. It takes everything, and keeps what it has room for.
func (s *Speech) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(text[:min(len(text), longestSpeech-s.text.Len())])
	return len(text), nil
}

// String returns what was said until now.
func (s *Speech) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
