package memkv

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// Store is a [kv.Store] in memory. Use [New] to make one.
type Store struct {
	mu    sync.Mutex
	safes map[string]*safe
	count uint64 // the last token or revision given out
}

var _ kv.Store = (*Store)(nil)

// A safe outlives its records, so that those who watch it keep their place.
type safe struct {
	rec     kv.Record // zero if there never was one, or it was deleted
	expires time.Time // zero if the record is permanent
	changed chan struct{}
}

// New returns a store in which all safes are vacant.
func New() *Store {
	return &Store{safes: make(map[string]*safe)}
}

// Create implements [kv.Store].
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := check(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.write(ctx, name, func(sf *safe) (kv.Record, error) {
		if sf.live() {
			return kv.Record{}, kv.ErrHeld
		}
		return s.sign(rec), nil
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
	return s.write(ctx, name, func(sf *safe) (kv.Record, error) {
		if !sf.live() || !sf.rec.Owns(old) || sf.rec.Revision != old.Revision {
			return kv.Record{}, kv.ErrStale
		}
		if next.Signature != old.Signature {
			return s.sign(next), nil
		}
		rec := sf.rec
		rec.Value = next.Value
		rec.Revision = s.next()
		return rec, nil
	})
}

// Refresh implements [kv.Store].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.write(ctx, name, func(sf *safe) (kv.Record, error) {
		if !sf.live() || !sf.rec.Owns(rec) {
			return kv.Record{}, kv.ErrStale
		}
		return sf.rec, nil
	})
}

// Delete implements [kv.Store].
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	_, err := s.write(ctx, name, func(sf *safe) (kv.Record, error) {
		if !sf.live() || !sf.rec.Owns(rec) {
			return kv.Record{}, kv.ErrStale
		}
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
// elections: over whatever is there, without an expiry. It becomes a foreign
// record.
func (s *Store) Put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := kv.Decode(value)
	rec.Revision, rec.Permanent = s.next(), true
	s.at(name).set(rec, time.Time{})
}

// Remove empties the safe as an operator would, whoever owns it.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(name).set(kv.Record{}, time.Time{})
}
