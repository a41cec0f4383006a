package memkv

import (
	"context"
	"fmt"
	"time"

	"github.com/electkv/election/kv"
)

func (sf *safe) live() bool {
	return sf.rec != kv.Record{} && (sf.expires.IsZero() || time.Now().Before(sf.expires))
}

// set replaces the record and wakes everybody who watches the safe.
func (sf *safe) set(rec kv.Record, expires time.Time) {
	sf.rec, sf.expires = rec, expires
	close(sf.changed)
	sf.changed = make(chan struct{})
}

// at returns the safe of a name. The caller holds the mutex.
func (s *Store) at(name string) *safe {
	sf := s.safes[name]
	if sf == nil {
		sf = &safe{changed: make(chan struct{})}
		s.safes[name] = sf
	}
	return sf
}

// next returns the next token or revision. The caller holds the mutex.
func (s *Store) next() uint64 {
	s.count++
	return s.count
}

// sign makes a new signature's record of what the caller asked for. The caller
// holds the mutex.
func (s *Store) sign(rec kv.Record) kv.Record {
	n := s.next()
	return kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: rec.TTL, Token: n, Revision: n}
}

// write is the atomic step of every operation: decide looks at the safe and
// says what it shall hold (nothing, if the record is zero).
func (s *Store) write(ctx context.Context, name string, decide func(*safe) (kv.Record, error)) (kv.Record, error) {
	if ctx.Err() != nil {
		return kv.Record{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sf := s.at(name)
	rec, err := decide(sf)
	if err != nil {
		return kv.Record{}, fmt.Errorf("memkv: %q: %w", name, err)
	}
	sf.set(rec, time.Now().Add(rec.TTL))
	return rec, nil
}

// look returns what the safe holds now, the zero record if that is nothing; when
// it expires, if ever; and a channel that is closed at the next change.
func (s *Store) look(name string) (kv.Record, time.Time, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sf := s.at(name)
	if !sf.live() {
		return kv.Record{}, time.Time{}, sf.changed
	}
	return sf.rec, sf.expires, sf.changed
}

// state is what a reader is told of a safe that holds rec.
func state(rec kv.Record) (kv.Record, error) {
	if rec == (kv.Record{}) {
		return rec, kv.ErrVacant
	}
	return rec, nil
}

var errNoName = fmt.Errorf("memkv: a safe needs a name: %w", kv.ErrInvalid)

// check refuses what no record can have.
func check(name string, rec kv.Record) error {
	switch {
	case name == "":
		return errNoName
	case rec.Signature == "":
		return fmt.Errorf("memkv: %q: a record needs a signature: %w", name, kv.ErrInvalid)
	case rec.TTL <= 0:
		return fmt.Errorf("memkv: %q: TTL %v: want a positive duration: %w", name, rec.TTL, kv.ErrInvalid)
	}
	return nil
}

// checkOwn refuses to touch what this library did not write.
func checkOwn(name string, rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("memkv: %q: a foreign record is left alone: %w", name, kv.ErrInvalid)
	}
	if name == "" {
		return errNoName
	}
	if rec.Signature == "" {
		return fmt.Errorf("memkv: %q: a record needs a signature: %w", name, kv.ErrInvalid)
	}
	return nil
}
