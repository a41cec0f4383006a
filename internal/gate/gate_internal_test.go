package gate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAGateLetsSoManyInAtOnceAndTheOthersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		width := 2
		g := New(func() int { return width })
		require.NoError(t, g.wait(t.Context()))
		require.NoError(t, g.wait(t.Context()))
		order := make(chan int, 5)
		leaves := make([]context.CancelFunc, cap(order))
		var crowd sync.WaitGroup
		for i := range leaves {
			var ctx context.Context
			ctx, leaves[i] = context.WithCancel(t.Context())
			crowd.Go(func() {
				if g.wait(ctx) == nil {
					order <- i
				}
			})
			synctest.Wait()
		}
		leaves[1]() // it has waited for too long
		synctest.Wait()
		require.Empty(t, order)
		g.leave()
		require.Equal(t, 0, <-order)
		width = 1
		g.leave()
		synctest.Wait()
		require.Empty(t, order, "it has shrunk")
		g.leave()
		require.Equal(t, 2, <-order)
		synctest.Wait()
		require.Empty(t, order)
		width = 2
		late := make(chan error, 1)
		crowd.Go(func() { late <- g.wait(t.Context()) })
		synctest.Wait()
		require.Empty(t, late, "it has grown, and others have waited for longer")
		g.leave()
		require.ElementsMatch(t, []int{3, 4}, []int{<-order, <-order})
		g.leave()
		require.NoError(t, <-late)
		crowd.Wait()
		g.leave()
		g.leave()
		require.Zero(t, g.inside)
		require.Zero(t, g.line.Len())
		for _, leave := range leaves {
			leave()
		}
	})
}

// Turns that come and contexts that end at the same moment.
func TestNobodyIsLostAtAGate(t *testing.T) {
	g := Fixed(1)
	var inside atomic.Int64
	var crowd sync.WaitGroup
	for range 50 {
		crowd.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Microsecond)
				if g.wait(ctx) == nil {
					if inside.Add(1) > 1 {
						panic("two at once")
					}
					runtime.Gosched()
					inside.Add(-1)
					g.leave()
				}
				cancel()
			}
		})
	}
	crowd.Wait()
	require.Zero(t, g.inside)
	require.Zero(t, g.line.Len())
}

func TestAGateThatHasBecomeWiderLetsTheLineIn(t *testing.T) {
	width := 1
	g := New(func() int { return width })
	require.NoError(t, g.wait(t.Context()))
	in := make(chan error)
	go func() { in <- g.wait(t.Context()) }()
	for waiting := 0; waiting == 0; {
		g.mu.Lock()
		waiting = g.line.Len()
		g.mu.Unlock()
	}
	g.mu.Lock()
	width = 3
	g.mu.Unlock()
	require.NoError(t, g.wait(t.Context()), "nobody has left")
	require.NoError(t, <-in)
}
