package board_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestWhoFollowsIsToldThePresentStateAndEachLaterOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "safe")
		require.Equal(t, []told{vacant}, l.heard())
		for _, n := range []uint64{1, 2, 0, 3} {
			wait()
			w.change("safe", nth(n))
			wait()
			want := holding(n)
			if n == 0 {
				want = vacant
			}
			require.Equal(t, []told{want}, l.heard())
		}
	})
}

func TestWhoFollowsLaterIsToldThePresentStateFirst(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.put("safe", nth(1))
		early := w.listen(t, "safe")
		require.Equal(t, []told{holding(1)}, early.heard())
		wait()
		require.Equal(t, []told{holding(1)}, w.listen(t, "safe").heard())
		w.put("safe", nth(2))
		require.Equal(t, []told{holding(2)}, w.listen(t, "safe").heard(), "nobody has hinted at it")
		require.Equal(t, []told{holding(2)}, early.heard(), "what one learns, all do")
	})
}

// The look that is under way has read the safe before it changed.
func TestNobodyIsToldWhatALookSawThatBeganBefore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.meanwhile(func(context.Context) { time.Sleep(time.Second) })
		w.put("safe", nth(1))
		early := w.listen(t, "safe")
		time.Sleep(time.Second / 2)
		w.put("safe", nth(2))
		late := w.listen(t, "safe")
		time.Sleep(time.Second)
		require.Equal(t, []told{holding(1)}, early.heard())
		require.Empty(t, late.heard())
		time.Sleep(time.Second)
		require.Equal(t, []told{holding(2)}, early.heard())
		require.Equal(t, []told{holding(2)}, late.heard())
	})
}

// A store that pushes shows what was underway before the follower's look began.
func TestNobodyIsToldWhatIsPushedBeforeItsLookHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		early := w.listen(t, "safe")
		require.Equal(t, []told{vacant}, early.heard())
		w.meanwhile(func(context.Context) { time.Sleep(time.Second) })
		w.put("safe", nth(2))
		late := w.listen(t, "safe")
		time.Sleep(time.Second / 2)
		w.push("safe", nth(1))
		require.Equal(t, []told{holding(1)}, early.heard())
		require.Empty(t, late.heard())
		time.Sleep(time.Second)
		require.Equal(t, []told{holding(2)}, early.heard())
		require.Equal(t, []told{holding(2)}, late.heard())
	})
}

func TestWhatHasNotChangedIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "safe")
		require.Equal(t, []told{vacant}, l.heard())
		for range 10 {
			w.change("safe", nth(0))
			wait()
		}
		require.Empty(t, l.heard())
	})
}

func TestWhatIsPushedIsToldWithoutALook(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "safe")
		require.Equal(t, []told{vacant}, l.heard())
		for n := range uint64(10) {
			w.push("safe", nth(n+1))
			require.Equal(t, []told{holding(n + 1)}, l.heard())
		}
		require.Len(t, w.looked("safe"), 1)
	})
}

func TestASlowTellIsToldTheNewestState(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var calls []uint64
		var busy atomic.Bool
		defer w.Follow("safe", func(rec kv.Record, _ error) {
			if !busy.CompareAndSwap(false, true) {
				t.Error("two calls at once")
			}
			defer busy.Store(false)
			time.Sleep(time.Second)
			calls = append(calls, rec.Token)
		})()
		wait()
		for n := range uint64(50) { // the first call lasts
			w.change("safe", nth(n+1))
			wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []uint64{0, 49, 50}, calls)
	})
}

// A hundred follow while four show one state after the other, each at its own speed.
func TestManyAreToldOneByOneAndNeverGoBack(t *testing.T) {
	const states = 1000
	bubble(t, func(t *testing.T, w *world) {
		var last [100]atomic.Uint64
		for i := range last {
			var busy atomic.Bool
			defer w.Follow("safe", func(rec kv.Record, _ error) {
				if !busy.CompareAndSwap(false, true) {
					t.Error("two calls at once")
				}
				defer busy.Store(false)
				for range i % 7 {
					runtime.Gosched()
				}
				if at := last[i].Swap(rec.Token); rec.Token != 0 && rec.Token <= at {
					t.Errorf("told %d after %d", rec.Token, at)
				}
			})()
		}
		wait()
		var (
			mu    sync.Mutex
			n     uint64
			crowd sync.WaitGroup
		)
		for range 4 {
			crowd.Go(func() {
				for range states / 4 {
					mu.Lock()
					n++
					w.put("safe", nth(n))
					w.push("safe", nth(n))
					mu.Unlock()
					runtime.Gosched()
				}
			})
		}
		crowd.Wait()
		wait()
		for i := range last {
			require.EqualValues(t, states, last[i].Load())
		}
	})
}
