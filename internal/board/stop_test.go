package board_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestNothingIsToldAfterStop(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		one, two := w.listen(t, "safe"), w.listen(t, "safe")
		require.Equal(t, []told{vacant}, one.heard())
		require.Equal(t, []told{vacant}, two.heard())
		wait()
		one.stop()
		w.change("safe", nth(1))
		time.Sleep(2 * next)
		require.Empty(t, one.heard())
		require.Equal(t, []told{holding(1)}, two.heard(), "the other goes on")
		require.Equal(t, []string{"begin safe"}, w.saw())
		two.stop()
		looks := len(w.looked("safe"))
		w.change("safe", nth(2))
		w.push("safe", nth(2))
		time.Sleep(2 * next)
		require.Empty(t, two.heard())
		require.Len(t, w.looked("safe"), looks, "nobody needs a look")
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

func TestStopAtOnceIsToldNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 100 {
			l := w.listen(t, "safe")
			for range i % 4 {
				runtime.Gosched()
			}
			l.stop()
			l.heard()
			wait()
			require.Empty(t, l.heard())
		}
		begun, ended := 0, 0
		for _, e := range w.saw() {
			switch e {
			case "begin safe":
				begun++
			case "end safe":
				ended++
			}
		}
		require.Equal(t, begun, ended)
	})
}

func TestStopWaitsForACallThatIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var calls, ended int
		stop := w.Follow("safe", func(kv.Record, error) {
			calls++
			time.Sleep(time.Hour)
			ended++
		})
		wait()
		w.change("safe", nth(1))
		wait()
		var crowd sync.WaitGroup
		for range 3 {
			crowd.Go(func() {
				stop()
				if ended != 1 {
					t.Error("stop has returned during a call")
				}
			})
		}
		crowd.Wait()
		stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, 1, calls, "the state that came meanwhile is told nobody")
		require.Equal(t, []string{"begin safe", "end safe"}, w.saw())
	})
}

// Those who leave and those who come meet at one safe.
func TestManyComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var crowd sync.WaitGroup
		for i := range 50 {
			crowd.Go(func() {
				for n := range 20 {
					first := make(chan struct{})
					var once sync.Once
					stop := w.Follow("safe", func(kv.Record, error) { once.Do(func() { close(first) }) })
					if (i+n)%3 > 0 {
						<-first
					}
					stop()
				}
			})
		}
		crowd.Wait()
		open := 0
		for _, e := range w.saw() {
			switch e {
			case "begin safe":
				open++
			case "end safe":
				open--
			}
		}
		require.Zero(t, open, "each that was begun has ended")
		require.Equal(t, []told{vacant}, w.listen(t, "safe").heard())
	})
}
