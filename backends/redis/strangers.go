package rediskv

import (
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
)

// Strangers are servers of which nobody has said yet that they are past their
// quarantine, by the key of the record that was looked for there. How long they
// have been known is measured here: a server's own clock may have been set since
// it was restarted.
//
// An entry is there for as long as its server is a stranger, and the latest alone.
type strangers struct {
	patience time.Duration // how long a quarantine lasts

	mu  sync.Mutex
	met map[string]meeting
}

// A meeting is when a server of an identity was first seen. Of the two clocks the
// slower one counts: time in which the host was asleep may be no time for the one
// who waits.
type meeting struct {
	id   string
	mono time.Time
	boot time.Duration
}

func newStrangers(patience time.Duration) *strangers {
	return &strangers{patience: patience, met: make(map[string]meeting)}
}

// meet notes that the server where the key is has this identity, or that it is no
// stranger if that is empty. It is called when the server has answered: what it
// may have forgotten, it had before.
func (s *strangers) meet(key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case id == "":
		delete(s.met, key)
	case s.met[key].id != id:
		s.met[key] = meeting{id: id, mono: time.Now(), boot: boottime.Now()}
	}
}

// waited returns the identity of the server that has been seen where the key is
// for as long as a quarantine lasts, or "".
func (s *strangers) waited(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.met[key]
	if !ok || min(time.Since(m.mono), boottime.Now()-m.boot) < s.patience {
		return ""
	}
	return m.id
}
