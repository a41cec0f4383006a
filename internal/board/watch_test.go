package board_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestAWatchYieldsWhatAFollowTells(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		why := errors.New("seen enough")
		var said []told
		for rec, err := range w.Watch(ctx, "safe") {
			said = append(said, told{rec, err})
			wait()
			if len(said) <= 3 {
				w.change("safe", nth(uint64(len(said))))
			} else {
				cancel(why)
			}
		}
		require.Equal(t, []told{vacant, holding(1), holding(2), holding(3), {err: why}}, said)
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestAWatchEndsWithItsErrorOrItsReader(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for range w.Watch(t.Context(), "safe") {
			w.topic("safe").Hint()
			break
		}
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
		w.fail(errDown)
		var said []told
		for rec, err := range w.Watch(t.Context(), "safe") {
			said = append(said, told{rec, err})
		}
		require.Equal(t, []told{{err: errDown}}, said)
		require.Len(t, w.saw(), 4)
	})
}

// The reader is busy when its context ends and another state comes.
func TestAWatchEndsWithItsContextThoughItsReaderIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last error
		for _, err := range w.Watch(ctx, "safe") {
			wait()
			w.change("safe", nth(uint64(len(w.looked("safe")))))
			time.Sleep(2 * time.Second)
			last = err
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestAWatchWhoseContextHasEndedBeginsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var said []told
		for rec, err := range w.Watch(ctx, "safe") {
			said = append(said, told{rec, err})
		}
		require.Equal(t, []told{{kv.Record{}, context.Canceled}}, said)
		require.Empty(t, w.saw())
	})
}
