package observer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/kv"
)

// Options are the settings of a [Store]. Nil means the defaults.
type Options struct {
	// Clock reads two clocks of this host: one that stands still while the host is
	// suspended, and one that goes on. What they show at the beginning does not
	// matter. Nil means the host's own.
	Clock func() (mono, boot time.Duration)

	// Span returns how long one of Go's timers has to run until Clock has gone on by d.
	// Nil means d: they run at one rate, but on the hosts of a simulation.
	Span func(d time.Duration) time.Duration
}

// Store is a [kv.Store] over a [Register]. A record expires for the processes that have
// watched it for long enough. Use [New] to make one.
type Store struct {
	reg    Register
	memory *memory
	span   func(time.Duration) time.Duration
}

var _ kv.Store = (*Store)(nil)

// New returns a store that does not know yet how old any record is.
func New(reg Register, opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	s := &Store{reg: reg, span: opts.Span}
	if s.span == nil {
		s.span = func(d time.Duration) time.Duration { return d }
	}
	clock := opts.Clock
	if clock == nil {
		clock = hostClock()
	}
	s.memory = newMemory(clock)
	return s
}

// tries is how often a create tries, if other records come and go meanwhile.
const tries = 3

// Create implements [kv.Store]: one Put into an empty cell, or over the revision that
// was judged dead. A record that keeps it out counts as seen, so a caller that only calls
// Create, and never watches, gets in too.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := s.check(name, rec); err != nil {
		return kv.Record{}, err
	}
	if rec.Lasting {
		return kv.Record{}, fmt.Errorf("%q: observers judge expiry, and to one that has not watched a record it is not over: use a store that judges by itself: %w", name, kv.ErrInvalid)
	}
	old, left := s.memory.recall(name)
	if left > 0 {
		old = kv.Record{}
	}
	for range tries {
		got, err := s.replace(ctx, name, old, rec)
		if !errors.Is(err, kv.ErrStale) {
			return got, err
		}
		var dead bool
		switch old, dead, err = s.look(ctx, name); {
		case errors.Is(err, kv.ErrVacant):
			old = kv.Record{}
		case err != nil:
			return kv.Record{}, err
		case !dead:
			return kv.Record{}, held(name)
		}
	}
	return kv.Record{}, held(name) // by others that come and go
}

// replace puts rec in the place of a dead record, or in an empty cell. A signature
// that comes back needs another token, which the register gives only to another
// signature or in an empty cell.
func (s *Store) replace(ctx context.Context, name string, dead, rec kv.Record) (kv.Record, error) {
	if dead.Signature == rec.Signature {
		if err := s.remove(ctx, name, dead); err != nil {
			return kv.Record{}, err
		}
		dead = kv.Record{}
	}
	return s.put(ctx, name, dead, sealed(rec, dead.Revision))
}

func held(name string) error { return fmt.Errorf("%q: %w", name, kv.ErrHeld) }

func stale(name string) error { return fmt.Errorf("%q: %w", name, kv.ErrStale) }

// Swap implements [kv.Store]: one Put at the revision that the owner's last refresh
// has left.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (got kv.Record, err error) {
	if err := checkOwn(name, old); err != nil {
		return kv.Record{}, err
	}
	published := next.Signature == old.Signature && !next.Foreign
	if !published {
		if err := s.check(name, next); err != nil {
			return kv.Record{}, err
		}
	}
	same := func(cell kv.Record) bool { return cell.Owns(old) && opened(cell).Revision == old.Revision }
	err = s.hold(ctx, name, same, func(cell kv.Record) error {
		if published {
			next.TTL = cell.TTL
		}
		got, err = s.put(ctx, name, cell, sealed(next, cell.Revision))
		return err
	})
	return got, err
}

// Refresh implements [kv.Store]: one Put of what the cell already holds.
// A value that was published meanwhile, perhaps by a call whose answer was lost, stays.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (got kv.Record, err error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	err = s.hold(ctx, name, rec.Owns, func(cell kv.Record) error {
		got, err = s.put(ctx, name, cell, cell)
		return err
	})
	return got, err
}

// Delete implements [kv.Store]. It also removes a record that was judged dead, though
// the safe counted as vacant.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	err := s.hold(ctx, name, rec.Owns, func(cell kv.Record) error { return s.remove(ctx, name, cell) })
	if !errors.Is(err, kv.ErrStale) {
		return err
	}
	if cell, left := s.memory.recall(name); left <= 0 && cell.Owns(rec) {
		if err := s.remove(ctx, name, cell); err != nil && !errors.Is(err, kv.ErrStale) {
			return err
		}
	}
	return err
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	if err := checkName(name); err != nil {
		return kv.Record{}, err
	}
	cell, dead, err := s.look(ctx, name)
	switch {
	case err != nil:
		return kv.Record{}, err
	case dead:
		return kv.Record{}, fmt.Errorf("%q: %w", name, kv.ErrVacant)
	}
	return opened(cell), nil
}

// Lifetime implements [kv.Store]. For a process that has not watched a record, it lives for
// its TTL from the first sighting on, however old it is.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if err := s.checkTTL(ttl); err != nil {
		return kv.Lifetime{}, err
	}
	longest := never
	if ttl < never/2 {
		longest = 2*ttl + time.Millisecond // the text form rounds up
	}
	return kv.Lifetime{Min: ttl, Max: longest}, nil
}

// hold carries out a write on what the cell holds, if that is what the caller means.
// It tries again when a write was refused, which had no effect, because of a refresh
// that came in between.
func (s *Store) hold(ctx context.Context, name string, means func(cell kv.Record) bool, write func(cell kv.Record) error) error {
	cell, left := s.memory.recall(name)
	known := left > 0 && means(cell)
	for refused := uint64(0); ; refused = cell.Revision {
		if !known {
			var dead bool
			var err error
			cell, dead, err = s.look(ctx, name)
			switch {
			case errors.Is(err, kv.ErrVacant), err == nil && (dead || !means(cell)):
				return stale(name)
			case err != nil:
				return err
			case cell.Revision == refused && refused != 0:
				return fmt.Errorf("%q: the store refuses a record that it shows unchanged: %w", name, kv.ErrStale)
			}
		}
		err := write(cell)
		if !errors.Is(err, kv.ErrStale) {
			return err
		}
		known = false
	}
}

// put writes to the register, and notes what it says.
func (s *Store) put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	got, err := s.reg.Put(ctx, name, old, next)
	if err != nil {
		return kv.Record{}, err
	}
	s.memory.saw(name, got)
	return opened(got), nil
}

// remove empties the cell, and notes it.
func (s *Store) remove(ctx context.Context, name string, cell kv.Record) error {
	err := s.reg.Remove(ctx, name, cell)
	if err == nil {
		s.memory.vacant(name)
	}
	return err
}

// look reads the register, notes the answer, and judges.
func (s *Store) look(ctx context.Context, name string) (cell kv.Record, dead bool, err error) {
	cell, err = s.reg.Get(ctx, name)
	if errors.Is(err, kv.ErrVacant) {
		s.memory.vacant(name)
	}
	if err != nil {
		return kv.Record{}, false, err
	}
	s.memory.saw(name, cell)
	return cell, s.memory.left(name, cell) <= 0, nil
}

// check refuses what no record can have.
func (s *Store) check(name string, rec kv.Record) error {
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	return s.checkTTL(rec.TTL)
}

func (s *Store) checkTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("TTL %v: want a positive duration: %w", ttl, kv.ErrInvalid)
	}
	return s.reg.Check(ttl)
}

func checkName(name string) error {
	if name == "" {
		return fmt.Errorf("a safe needs a name: %w", kv.ErrInvalid)
	}
	return nil
}

// checkOwn refuses to touch what this library did not write.
func checkOwn(name string, rec kv.Record) error {
	switch {
	case rec.Foreign:
		return fmt.Errorf("%q: a foreign record is left alone: %w", name, kv.ErrInvalid)
	case rec.Signature == "":
		return fmt.Errorf("%q: a record needs a signature: %w", name, kv.ErrInvalid)
	}
	return checkName(name)
}
