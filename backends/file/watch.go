package filekv

import (
	"context"
	"fmt"
	"iter"

	"github.com/electkv/election/kv"
)

// Watch looks at the safe when file events, the clock or the holder's life file
// say that something has changed, and every 30 s.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		err := s.watch(ctx, name, yield)
		if err != nil {
			yield(kv.Record{}, fmt.Errorf("filekv: watch %.80q: %w", name, err))
		}
	}
}

// watch returns nil if the reader has seen enough.
func (s *Store) watch(ctx context.Context, name string, yield func(kv.Record, error) bool) error {
	f, _, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	e := s.listen(f)
	defer s.leave(e)
	defer s.seen.Watch(f.path)()
	var seen *state
	for {
		// Open first: what changes after the look comes as an event.
		sighted := e.open()
		cur, err := s.look(f)
		if err != nil {
			return err
		}
		if err := e.expect(cur, sighted); err != nil {
			return err
		}
		if seen == nil || cur.held != seen.held || cur.rec != seen.rec {
			seen = &cur
			if !yield(cur.rec, cur.vacancy(name)) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-e.woken:
		}
		if err := ended(ctx); err != nil {
			return err
		}
	}
}

// vacancy returns the error that says that the safe is vacant, if it is.
func (c state) vacancy(name string) error {
	if c.held {
		return nil
	}
	return fmt.Errorf("filekv: %.80q: %w", name, kv.ErrVacant)
}
