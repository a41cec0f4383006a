package board_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A watched is a store that is no kv.Board.
type watched struct {
	kv.Store
	watch func(context.Context, string) iter.Seq2[kv.Record, error]
}

func (w watched) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return w.watch(ctx, name)
}

// boarded is a store that is one.
type boarded struct {
	watched
	w *world
}

func (b boarded) Follow(name string, tell func(kv.Record, error)) func() {
	return b.w.Follow(name, tell)
}

// follow follows a store until the test ends.
func follow(t *testing.T, ctx context.Context, s kv.Store) *listener {
	l := &listener{}
	l.stop = board.Follow(ctx, s, "safe", l.tell)
	t.Cleanup(l.stop)
	return l
}

func TestABoardIsFollowedByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := follow(t, t.Context(), boarded{w: w})
		require.Equal(t, []told{vacant}, l.heard())
		w.change("safe", nth(1))
		wait()
		require.Equal(t, []told{holding(1)}, l.heard())
		l.stop()
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestAnyOtherStoreIsWatched(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		type key struct{}
		var with any
		l := follow(t, context.WithValue(t.Context(), key{}, "value"), watched{watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
			with = ctx.Value(key{})
			return w.Watch(ctx, name)
		}})
		require.Equal(t, []told{vacant}, l.heard())
		require.Equal(t, "value", with)
		w.change("safe", nth(1))
		wait()
		require.Equal(t, []told{holding(1)}, l.heard())
		var crowd sync.WaitGroup
		for range 3 {
			crowd.Go(l.stop)
		}
		crowd.Wait()
		l.stop()
		require.Empty(t, l.heard(), "the end that was asked for is no news")
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestStopWaitsForACallAboutAWatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		calls, ended := 0, 0
		stop := board.Follow(t.Context(), watched{watch: w.Watch}, "safe", func(kv.Record, error) {
			calls++
			time.Sleep(time.Hour)
			ended++
		})
		wait()
		w.change("safe", nth(1))
		wait()
		stop()
		require.Equal(t, 1, calls)
		require.Equal(t, 1, ended)
	})
}

func TestAWatchEndsWithTheContextOfItsFollow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		l := follow(t, ctx, watched{watch: w.Watch})
		require.Equal(t, []told{vacant}, l.heard())
		cancel()
		require.Empty(t, l.heard())
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestAWatchThatFailsIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.fail(errDown)
		l := follow(t, t.Context(), watched{watch: w.Watch})
		time.Sleep(next)
		require.Equal(t, []told{{err: errDown}}, l.heard())
	})
}

func TestAWatchThatEndsWithoutAnErrorIsToldAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := follow(t, t.Context(), watched{watch: func(context.Context, string) iter.Seq2[kv.Record, error] {
			return func(yield func(kv.Record, error) bool) { yield(kv.Record{}, kv.ErrVacant) }
		}})
		time.Sleep(time.Hour)
		said := l.heard()
		require.Len(t, said, 2)
		require.Equal(t, vacant, said[0])
		require.Zero(t, said[1].rec)
		require.ErrorContains(t, said[1].err, "ended without an error")
		require.NotErrorIs(t, said[1].err, kv.ErrVacant)
	})
}

func TestAWatchTakesOneGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var crowd []*listener
		before := settled()
		for range 100 {
			crowd = append(crowd, follow(t, t.Context(), watched{watch: w.Watch}))
		}
		require.InDelta(t, before+100, settled(), few)
		for _, l := range crowd {
			l.stop()
		}
		require.InDelta(t, before, settled(), few)
	})
}
