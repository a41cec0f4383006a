package filekv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/kv"
)

// A step is what a write makes of the state that it found.
type step struct {
	rec  kv.Record // without a signature: the safe becomes vacant
	life string    // backs rec
	// clock and deadline say when rec fades. An empty clock is this process's.
	clock    string
	deadline time.Duration
	until    int64 // the same by the wall clock, as in a page
	// before is when the record fades that the step goes on from, 0 if it does
	// not matter or cannot be told. A step that comes later is not taken.
	before time.Duration
	// durable is set where the token changes.
	durable bool
}

// write changes the safe f, in one rename(2) of its head. It asks decide what to
// make of the state that is there, and asks again if another write came between,
// as nothing has been written then.
func (s *Store) write(ctx context.Context, f folder, decide func(state) (step, error)) (err error) {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	leave, err := f.queue(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	for {
		err := s.turn(ctx, f, decide)
		if !errors.Is(err, errTurned) {
			return err
		}
	}
}

func (s *Store) turn(ctx context.Context, f folder, decide func(state) (step, error)) error {
	if err := ended(ctx); err != nil {
		return err
	}
	cur, err := s.look(f)
	if err != nil {
		return err
	}
	next, err := decide(cur)
	if err != nil {
		return err
	}
	if cur.found.number == 0 {
		if err := f.found(); err != nil {
			return err
		}
		return errTurned
	}
	t := turn{durable: next.durable, still: func() error { return s.still(ctx, next.before) }}
	if next.rec.Signature != "" {
		if next.clock == "" {
			if next.clock, err = clockName(); err != nil {
				return err
			}
		}
		t.text = writePage(f, next)
	}
	return f.turn(cur.found, t)
}

// still reports, at the last moment, whether a step may be taken. A record that
// has faded is not brought back.
func (s *Store) still(ctx context.Context, before time.Duration) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if before == 0 {
		return nil
	}
	now, err := sinceBoot()
	if err == nil && now >= before {
		return fmt.Errorf("%w: too late", kv.ErrStale)
	}
	return err
}

// begin returns what an operation on the named safe starts with. TTLs count from
// the time that it returns.
func (s *Store) begin(ctx context.Context, name string) (folder, time.Duration, error) {
	f, err := s.folder(name)
	if err != nil {
		return f, 0, err
	}
	if err := ended(ctx); err != nil {
		return f, 0, err
	}
	start, err := sinceBoot()
	return f, start, err
}
