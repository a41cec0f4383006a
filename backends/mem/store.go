package memkv

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// Store is a [kv.Store] in memory. Use [New] to make one.
type Store struct {
	lines bool // it is a Queue's
	board *board.Board

	mu    sync.Mutex
	safes map[string]*safe
	count uint64           // the last token or revision given out
	stirs map[string]*stir // by roster
}

var (
	_ kv.Board    = (*Store)(nil)
	_ kv.HandOver = (*Store)(nil)
	_ kv.Roster   = (*Store)(nil)
	_ kv.Vacate   = (*Store)(nil)
)

// New returns a store in which all safes are vacant.
func New() *Store {
	s := &Store{}
	s.init()
	return s
}

func (s *Store) init() {
	s.safes, s.stirs = make(map[string]*safe), make(map[string]*stir)
	s.board = board.New(0, s.shown)
}

// Create implements [kv.Store].
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := check(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		if len(sf.line) > 0 {
			return kv.Record{}, kv.ErrHeld
		}
		return sf.add(s.sign(rec)), nil
	})
}

// Swap implements [kv.Store].
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if err := checkOwn(name, old); err != nil {
		return kv.Record{}, err
	}
	if next.Signature != old.Signature {
		if err := check(name, next); err != nil {
			return kv.Record{}, err
		}
	}
	return s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		switch {
		case !sf.holds(old):
			return kv.Record{}, kv.ErrStale
		case next.Signature == old.Signature:
			rec := sf.line[0].rec
			rec.Value, rec.Note, rec.Revision = next.Value, next.Note, s.next()
			return sf.set(0, rec), nil
		case len(sf.line) > 1:
			return kv.Record{}, fmt.Errorf("others are in line: %w", kv.ErrStale)
		}
		return sf.set(0, s.sign(next)), nil
	})
}

// HandOver implements [kv.HandOver]. The record keeps itself alive.
func (s *Store) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	if err := checkHeir(name, old, place, heir); err != nil {
		return kv.Record{}, err
	}
	return s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		switch {
		case !sf.holds(old) || !s.at(place).holds(heir):
			return kv.Record{}, kv.ErrStale
		case len(sf.line) > 1:
			return kv.Record{}, fmt.Errorf("others are in line: %w", kv.ErrStale)
		}
		next := heir
		next.Note = note
		return sf.set(0, s.sign(next)), nil
	})
}

// Refresh implements [kv.Store].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, leads, err := s.stay(ctx, name, rec)
	if err == nil && !leads {
		return kv.Record{}, fmt.Errorf("memkv: %q: not first in line: %w", name, kv.ErrStale)
	}
	return rec, err
}

// Delete implements [kv.Store].
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	_, err := s.step(ctx, name, func(sf *safe) (kv.Record, error) { return sf.delete(rec) })
	return err
}

// Vacate implements [kv.Vacate].
func (s *Store) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		if other := s.at(place); len(other.line) > 0 {
			return other.line[0].rec, kv.ErrHeld
		}
		return sf.delete(rec)
	})
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	if name == "" {
		return kv.Record{}, errNoName
	}
	if ctx.Err() != nil {
		return kv.Record{}, context.Cause(ctx)
	}
	rec, _ := s.look(name)
	if rec == (kv.Record{}) {
		return rec, kv.ErrVacant
	}
	return rec, nil
}

// Watch implements [kv.Store].
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.board.Watch(ctx, name)
}

// Follow implements [kv.Board].
func (s *Store) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	return s.board.Follow(name, tell)
}

// shown is the source of the store's board.
func (s *Store) shown(name string, t *board.Topic) (look board.Look, end func(), err error) {
	if name == "" {
		return nil, nil, errNoName
	}
	s.follow(name, t, true)
	look = func(_ context.Context, show func(kv.Record)) (time.Duration, error) {
		rec, expires := s.look(name)
		show(rec)
		if expires.IsZero() {
			return math.MaxInt64, nil
		}
		return time.Until(expires), nil
	}
	return look, func() { s.follow(name, t, false) }, nil
}

// Lifetime implements [kv.Store]: records live exactly as long as asked.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if ttl <= 0 {
		return kv.Lifetime{}, fmt.Errorf("memkv: TTL %v: want a positive duration: %w", ttl, kv.ErrInvalid)
	}
	return kv.Lifetime{Min: ttl, Max: ttl, Queue: s.lines}, nil
}

// Put writes value at name, as another program that knows nothing of elections would:
// over anything that the safe holds, without an expiry. It becomes a foreign record.
func (s *Store) Put(name, value string) {
	s.strange(name, value, false)
}

// Remove takes away what the safe holds, as an operator would, no matter which candidate
// owns it.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sf := s.at(name); len(sf.line) > 0 {
		sf.remove(0)
	}
}
