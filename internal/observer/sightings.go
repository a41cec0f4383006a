package observer

import (
	"time"

	"github.com/electkv/election/kv"
)

// Sightings are for a store that judges its records by a clock that their owners
// share, and has to observe those that were written by a clock that it cannot compare
// with its own. Any number of goroutines may use them at once.
type Sightings struct{ memory *memory }

// NewSightings returns the sightings of an observer that has seen nothing yet.
func NewSightings() *Sightings { return &Sightings{newMemory(hostClock())} }

// Left notes that an answer has arrived by which the safe holds rec, and returns how
// long it will be before rec can be judged dead: its TTL after it was first seen. The
// revision must be another after each refresh. Not positive: the store may replace
// rec, on the condition that it is still at that revision.
func (s *Sightings) Left(name string, rec kv.Record) time.Duration {
	s.memory.saw(name, rec)
	return s.memory.left(name, rec)
}

// Forget notes that the safe holds nothing that has to be observed.
func (s *Sightings) Forget(name string) { s.memory.vacant(name) }

// Watch keeps a name from being forgotten until unwatch is called.
func (s *Sightings) Watch(name string) (unwatch func()) {
	s.memory.watch(name)
	return func() { s.memory.unwatch(name) }
}
