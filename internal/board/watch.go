package board

import (
	"context"
	"errors"
	"iter"

	"github.com/electkv/election/kv"
)

// Watch implements [kv.Store] by following.
func (b *Board) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if ctx.Err() != nil {
			yield(kv.Record{}, context.Cause(ctx))
			return
		}
		type sighting struct {
			rec kv.Record
			err error
		}
		seen, left := make(chan sighting), make(chan struct{})
		stop := b.Follow(name, func(rec kv.Record, err error) {
			select {
			case seen <- sighting{rec, err}:
			case <-left:
			}
		})
		defer stop()
		defer close(left)
		for {
			select {
			case <-ctx.Done():
				yield(kv.Record{}, context.Cause(ctx))
				return
			case s := <-seen:
				if !yield(s.rec, s.err) || s.err != nil && !errors.Is(s.err, kv.ErrVacant) {
					return
				}
			}
		}
	}
}
