package memkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// Store is a [kv.Store] in memory. Use [New] or [NewQueue] to make one.
type Store struct {
	lines bool

	mu    sync.Mutex
	safes map[string]*safe
	count uint64 // the last token or revision given out
}

var _ kv.Queue = (*Store)(nil)

// New returns a store in which all safes are vacant.
func New() *Store {
	return &Store{safes: make(map[string]*safe)}
}

// NewQueue returns a store as [New] does, in which candidates wait in line.
func NewQueue() *Store {
	s := New()
	s.lines = true
	return s
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
		case sf.find(old) != 0 || sf.line[0].rec.Revision != old.Revision:
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

// Refresh implements [kv.Store].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, leads, err := s.Stay(ctx, name, rec)
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
	_, err := s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		i := sf.find(rec)
		if i < 0 {
			return kv.Record{}, kv.ErrStale
		}
		sf.remove(i)
		return kv.Record{}, nil
	})
	return err
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	if name == "" {
		return kv.Record{}, errNoName
	}
	if ctx.Err() != nil {
		return kv.Record{}, context.Cause(ctx)
	}
	rec, _, _ := s.look(name)
	return state(rec)
}

// Join implements [kv.Queue] for a store that [NewQueue] has made.
func (s *Store) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if !s.lines {
		return kv.Record{}, fmt.Errorf("memkv: lines: %w", errors.ErrUnsupported)
	}
	if err := check(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		for _, p := range sf.line {
			if p.rec.Signature == rec.Signature {
				return p.rec, nil
			}
		}
		return sf.add(s.sign(rec)), nil
	})
}

// Stay implements [kv.Queue].
func (s *Store) Stay(ctx context.Context, name string, rec kv.Record) (_ kv.Record, leads bool, _ error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, false, err
	}
	rec, err := s.step(ctx, name, func(sf *safe) (kv.Record, error) {
		i := sf.find(rec)
		if i < 0 {
			return kv.Record{}, kv.ErrStale
		}
		leads = i == 0
		return sf.set(i, sf.line[i].rec), nil
	})
	return rec, leads, err
}

// Watch implements [kv.Store].
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if name == "" {
			yield(kv.Record{}, errNoName)
			return
		}
		expiry := time.NewTimer(0)
		defer expiry.Stop()
		var last kv.Record
		for first := true; ctx.Err() == nil; first = false {
			rec, expires, changed := s.look(name)
			if (first || rec != last) && !yield(state(rec)) {
				return
			}
			last = rec
			expiry.Stop()
			if !expires.IsZero() {
				expiry.Reset(time.Until(expires))
			}
			select {
			case <-ctx.Done():
			case <-changed:
			case <-expiry.C:
			}
		}
		yield(kv.Record{}, context.Cause(ctx))
	}
}

// Lifetime implements [kv.Store]: records live exactly as long as asked.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if ttl <= 0 {
		return kv.Lifetime{}, fmt.Errorf("memkv: TTL %v: want a positive duration: %w", ttl, kv.ErrInvalid)
	}
	return kv.Lifetime{Min: ttl, Max: ttl}, nil
}

// Put writes value at name as another program would that knows nothing of
// elections: over whatever the safe holds, without an expiry. It becomes a
// foreign record.
func (s *Store) Put(name, value string) {
	s.strange(name, value, false)
}

// PutLast puts value at the end of the line, as another program would that waits
// in the same one, without an expiry.
func (s *Store) PutLast(name, value string) {
	s.strange(name, value, true)
}

// Remove takes away what the safe holds, as an operator would, whoever owns it.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sf := s.at(name); len(sf.line) > 0 {
		sf.remove(0)
	}
}
