package board_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWithoutAHintThereIsALookWhenItIsTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "safe")
		time.Sleep(next - 1)
		w.put("safe", nth(1))
		require.Equal(t, []told{vacant}, l.heard())
		time.Sleep(1)
		require.Equal(t, []told{holding(1)}, l.heard())
		time.Sleep(2 * next)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, next, 2 * next, 3 * next}, w.looked("safe"))
	})
}

func TestHintsThatAreCloserThanTheRestLeadToOneLook(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "safe")
		wait()
		for n := range uint64(10) {
			w.change("safe", nth(n+1))
			synctest.Wait()
			time.Sleep(rest / 20)
		}
		wait()
		require.Equal(t, []time.Duration{0, 2 * rest, 3 * rest}, w.looked("safe"), "the first hint is heeded at once")
		require.Equal(t, []told{vacant, holding(1), holding(10)}, l.heard())
		time.Sleep(next - 1)
		synctest.Wait()
		require.Len(t, w.looked("safe"), 4, "hints that were heeded are forgotten; it is time once")
	})
}

func TestAHintDuringALookLeadsToAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.meanwhile(func(context.Context) { time.Sleep(time.Second) })
		l := w.listen(t, "safe")
		time.Sleep(time.Second / 2)
		w.change("safe", nth(1)) // the look has read the safe already
		time.Sleep(time.Second)
		require.Equal(t, []told{vacant}, l.heard())
		time.Sleep(time.Second)
		require.Equal(t, []told{holding(1)}, l.heard())
		require.Equal(t, []time.Duration{0, time.Second + rest}, w.looked("safe"))
	})
}

func TestAllWhoFollowASafeShareItsLooks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.meanwhile(func(context.Context) { time.Sleep(rest) })
		var crowd []*listener
		for range 100 {
			crowd = append(crowd, w.listen(t, "safe"))
		}
		other := w.listen(t, "other")
		wait()
		require.Len(t, w.looked("safe"), 2, "one for the first, and one for those who came in the middle of it")
		w.meanwhile(nil)
		for _, l := range crowd {
			require.Equal(t, []told{vacant}, l.heard())
		}
		wait()
		w.change("safe", nth(1))
		for _, l := range crowd {
			require.Equal(t, []told{holding(1)}, l.heard())
		}
		time.Sleep(next + rest)
		synctest.Wait()
		require.Len(t, w.looked("safe"), 4, "one when it was hinted at, one when it was time")
		require.Len(t, w.looked("other"), 2)
		require.Equal(t, []told{vacant}, other.heard())
		require.ElementsMatch(t, []string{"begin safe", "begin other", "looked at safe", "looked at safe", "looked at other"}, w.saw())
	})
}
