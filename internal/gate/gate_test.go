package gate_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/gate"
)

func TestEachGoesThroughOnceAndNoMoreThanTheWidthAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = 3
		var inside, most atomic.Int64
		var mu sync.Mutex
		var seen []int
		pass := func(item int) {
			if now := inside.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(time.Second)
			inside.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, item)
		}
		items := []int{10, 11, 12, 13, 14, 15, 16}
		g := gate.Fixed(width)
		start := time.Now()
		g.Each(t.Context(), items, pass)
		require.Equal(t, 3*time.Second, time.Since(start), "seven, by three at once")
		require.Equal(t, int64(width), most.Load())
		slices.Sort(seen)
		require.Equal(t, items, seen)
	})
}

func TestOneThatIsSlowLeavesTheRestOfTheGateToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.Fixed(2)
		var done atomic.Int64
		go g.Do(context.WithoutCancel(t.Context()), func() { time.Sleep(time.Hour) })
		synctest.Wait()
		start := time.Now()
		g.Each(t.Context(), []int{1, 2, 3}, func(int) { time.Sleep(time.Second); done.Add(1) })
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Equal(t, int64(3), done.Load())
		time.Sleep(time.Hour)
	})
}

// What hangs keeps its room for a while, and then leaves twice without harm.
func TestWhatTakesLongMakesRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = time.Second
		g := gate.Yielding(1, long)
		start := time.Now()
		hangs, err := g.Enter(t.Context())
		require.NoError(t, err)
		next, err := g.Enter(t.Context())
		require.NoError(t, err)
		require.Equal(t, long, time.Since(start))
		hangs()
		ctx, cancel := context.WithTimeout(t.Context(), long/2)
		defer cancel()
		leave, err := g.Enter(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "one is inside")
		leave()
		next()
		leave, err = g.Enter(t.Context())
		require.NoError(t, err)
		leave()
	})
}
