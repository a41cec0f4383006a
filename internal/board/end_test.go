package board_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

var errDown = errors.New("the store is down")

func TestAnErrorIsToldOnceAndEndsTheTopic(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		one, two := w.listen(t, "safe"), w.listen(t, "safe")
		require.Equal(t, []told{vacant}, one.heard())
		require.Equal(t, []told{vacant}, two.heard())
		w.fail(errDown)
		wait()
		w.change("safe", nth(1))
		wait()
		for _, l := range []*listener{one, two} {
			require.Equal(t, []told{{err: errDown}}, l.heard())
		}
		old, looks := w.topic("safe"), len(w.looked("safe"))
		w.fail(nil)
		old.Hint()
		w.push("safe", nth(1))
		time.Sleep(2 * next)
		require.Empty(t, one.heard(), "nothing comes after an error")
		require.Empty(t, two.heard())
		require.Len(t, w.looked("safe"), looks)

		anew := w.listen(t, "safe")
		require.Equal(t, []told{holding(1)}, anew.heard())
		one.stop()
		two.stop()
		require.Equal(t, []string{"begin safe", "begin safe", "end safe"}, w.saw())
		wait()
		w.change("safe", nth(2))
		require.Equal(t, []told{holding(2)}, anew.heard(), "the end of the old topic is not that of the new one")
		require.Equal(t, []told{holding(2)}, w.listen(t, "safe").heard())
		require.Len(t, w.saw(), 3, "the new one is shared")
	})
}

func TestASlowTellIsToldOfTheErrorLast(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var said []told
		defer w.Follow("safe", func(rec kv.Record, err error) {
			said = append(said, told{rec, err})
			time.Sleep(time.Second)
		})()
		wait()
		w.change("safe", nth(1))
		wait()
		w.fail(errDown)
		w.change("safe", nth(2))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []told{vacant, {err: errDown}}, said)
	})
}

func TestWhatTheSourceRefusesIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen(t, "")
		require.Equal(t, []told{{err: kv.ErrInvalid}}, l.heard())
		time.Sleep(2 * next)
		require.Empty(t, l.heard())
		l.stop()
		require.Empty(t, w.saw())
	})
}

func TestAnErrorOfALookIsToldWithoutARecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.put("safe", nth(1))
		l := w.listen(t, "safe")
		wait()
		w.fail(errDown)
		w.topic("safe").Hint()
		require.Equal(t, []told{holding(1), {err: errDown}}, l.heard())
	})
}

func TestALookWhoseTopicHasEndedIsToldItsContextHas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.meanwhile(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
		})
		one, two := w.listen(t, "safe"), w.listen(t, "safe")
		time.Sleep(time.Second)
		one.stop()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"begin safe"}, w.saw(), "the other needs the look")
		two.stop()
		require.Equal(t, []string{"begin safe", "looked at safe", "end safe"}, w.saw())
		require.Empty(t, one.heard())
		require.Empty(t, two.heard())
	})
}
