package board_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// crowd follows so many safes at once, each look at which takes as long as a test says.
func crowd(t *testing.T, safes int, takes func(name string) time.Duration) (begun, most *atomic.Int32) {
	t.Helper()
	var now atomic.Int32
	begun, most = new(atomic.Int32), new(atomic.Int32)
	b := board.New(0, func(name string, _ *board.Topic) (board.Look, func(), error) {
		return func(ctx context.Context, show func(kv.Record)) (time.Duration, error) {
			begun.Add(1)
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			select {
			case <-time.After(takes(name)):
			case <-ctx.Done():
			}
			show(kv.Record{})
			return time.Hour, nil
		}, func() {}, nil
	})
	for i := range safes {
		t.Cleanup(b.Follow(fmt.Sprint(i), func(kv.Record, error) {}))
	}
	return begun, most
}

func TestFewLooksAreUnderWayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, most := crowd(t, 1000, func(string) time.Duration { return time.Millisecond })
		time.Sleep(time.Second)
		require.EqualValues(t, 1000, begun.Load())
		require.EqualValues(t, 16, most.Load())
	})
}

func TestLooksThatTakeLongHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, _ := crowd(t, 100, func(string) time.Duration { return time.Minute })
		time.Sleep(99 * time.Millisecond)
		require.EqualValues(t, 16, begun.Load())
		time.Sleep(time.Second)
		require.EqualValues(t, 100, begun.Load())
		time.Sleep(2 * time.Minute) // room that was made is made once
	})
}

func TestOneThatIsFollowedNoMoreLosesItsPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var looked []string
		b := board.New(0, func(name string, _ *board.Topic) (board.Look, func(), error) {
			return func(_ context.Context, show func(kv.Record)) (time.Duration, error) {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if name >= "b" {
					looked = append(looked, name)
				}
				show(kv.Record{})
				return time.Hour, nil
			}, func() {}, nil
		})
		ignore := func(kv.Record, error) {}
		for i := range 16 {
			t.Cleanup(b.Follow(fmt.Sprint(i), ignore))
		}
		leaves, stays := b.Follow("b", ignore), b.Follow("c", ignore)
		leaves()
		again := b.Follow("d", ignore)
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{"c", "d"}, looked)
		stays()
		again()
	})
}
