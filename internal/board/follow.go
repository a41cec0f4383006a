package board

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// errEnded stands for the error that a watch should have ended with.
var errEnded = errors.New("the store's watch has ended without an error")

// Follow is the Follow of a [kv.Board]. For any other store a goroutine reads its watch,
// with ctx's values; when ctx ends, so does that.
func Follow(ctx context.Context, s kv.Store, name string, tell func(kv.Record, error)) (stop func()) {
	if b, ok := s.(kv.Board); ok {
		return b.Follow(name, tell)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended := false
		for rec, err := range s.Watch(ctx, name) {
			if ctx.Err() != nil {
				return
			}
			tell(rec, err)
			ended = err != nil && !errors.Is(err, kv.ErrVacant)
		}
		if !ended && ctx.Err() == nil {
			tell(kv.Record{}, errEnded)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
