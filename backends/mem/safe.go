package memkv

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A safe is a line of records, of which it holds the first. It outlives them, so
// that those who watch it keep their place.
type safe struct {
	line   []place
	topics []*board.Topic // of those who follow it
	roster *stir          // of which it is a member's; nil if it is none
}

// A place is a record in line.
type place struct {
	rec     kv.Record
	expires time.Time // zero if the record is permanent
}

// sweep removes the places that have expired.
func (sf *safe) sweep() {
	now := time.Now()
	sf.line = slices.DeleteFunc(sf.line, func(p place) bool {
		return !p.expires.IsZero() && !now.Before(p.expires)
	})
}

// find returns the index of a record in the line, or -1.
func (sf *safe) find(rec kv.Record) int {
	return slices.IndexFunc(sf.line, func(p place) bool { return p.rec.Owns(rec) })
}

// holds reports whether the safe holds a record at its revision.
func (sf *safe) holds(rec kv.Record) bool {
	return sf.find(rec) == 0 && sf.line[0].rec.Revision == rec.Revision
}

// add puts a record at the end of the line. It lives for its TTL from now on, or
// for ever if it has none.
func (sf *safe) add(rec kv.Record) kv.Record {
	sf.line = append(sf.line, place{})
	return sf.set(len(sf.line)-1, rec)
}

// set replaces a record in the line, and wakes everybody who watches the safe.
func (sf *safe) set(i int, rec kv.Record) kv.Record {
	sf.line[i] = place{rec: rec}
	sf.renew(i)
	sf.wake()
	return rec
}

// renew starts the TTL of a record in the line anew. That is no change: a topic that looks
// when the record would have expired finds that it lives.
func (sf *safe) renew(i int) kv.Record {
	if p := &sf.line[i]; !p.rec.Permanent {
		p.expires = time.Now().Add(p.rec.TTL)
	}
	return sf.line[i].rec
}

// delete removes a record from the line.
func (sf *safe) delete(rec kv.Record) (kv.Record, error) {
	i := sf.find(rec)
	if i < 0 {
		return kv.Record{}, kv.ErrStale
	}
	sf.remove(i)
	return kv.Record{}, nil
}

func (sf *safe) remove(i int) {
	sf.line = slices.Delete(sf.line, i, i+1)
	sf.wake()
}

func (sf *safe) wake() {
	for _, t := range sf.topics {
		t.Hint()
	}
	sf.roster.now()
}

// at returns the safe of a name, with those in line who are alive. The caller
// holds the mutex.
func (s *Store) at(name string) *safe {
	sf := s.safes[name]
	if sf == nil {
		sf = &safe{roster: s.rosterOf(name)}
		s.safes[name] = sf
	}
	sf.sweep()
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
	return kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: rec.TTL, Token: n, Revision: n}
}

// strange puts another program's record in line, or over the first.
func (s *Store) strange(name, value string, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := kv.Decode(value)
	rec.Revision, rec.Permanent = s.next(), true
	sf := s.at(name)
	if last || len(sf.line) == 0 {
		sf.add(rec)
	} else {
		sf.set(0, rec)
	}
}

// step is the atomic step of every operation.
func (s *Store) step(ctx context.Context, name string, do func(*safe) (kv.Record, error)) (kv.Record, error) {
	if ctx.Err() != nil {
		return kv.Record{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := do(s.at(name))
	if err != nil {
		err = fmt.Errorf("memkv: %q: %w", name, err)
	}
	return rec, err
}

// stay starts the TTL of a place anew, and reports whether it is the first in line.
func (s *Store) stay(ctx context.Context, name string, rec kv.Record) (_ kv.Record, leads bool, _ error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, false, err
	}
	rec, err := s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		i := sf.find(rec)
		if i < 0 {
			return kv.Record{}, kv.ErrStale
		}
		leads = i == 0
		return sf.renew(i), nil
	})
	return rec, leads, err
}

// look returns what the safe holds now, the zero record if that is nothing, and when it
// expires, if ever.
func (s *Store) look(name string) (kv.Record, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sf := s.at(name)
	if len(sf.line) == 0 {
		return kv.Record{}, time.Time{}
	}
	return sf.line[0].rec, sf.line[0].expires
}

// follow has a topic hinted at when the safe changes, or no more.
func (s *Store) follow(name string, t *board.Topic, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sf := s.at(name); on {
		sf.topics = append(sf.topics, t)
	} else if i := slices.Index(sf.topics, t); i >= 0 {
		sf.topics = slices.Delete(sf.topics, i, i+1)
	}
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

// checkHeir refuses a hand-over that can never be made.
func checkHeir(name string, old kv.Record, place string, heir kv.Record) error {
	if err := checkOwn(name, old); err != nil {
		return err
	}
	if err := checkOwn(place, heir); err != nil {
		return err
	}
	if heir.Signature == old.Signature {
		return fmt.Errorf("memkv: %q: want an heir with another signature: %w", name, kv.ErrInvalid)
	}
	return check(name, heir)
}
