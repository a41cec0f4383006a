package board_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestAHintDoesNotPutOffALookThatIsDue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.pause(rest / 2)
		w.listen(t, "safe")
		synctest.Wait()
		w.pause(next)
		time.Sleep(rest / 4)
		w.topic("safe").Hint()
		time.Sleep(next / 2)
		require.Equal(t, []time.Duration{0, rest / 2}, w.looked("safe"))
	})
}

func TestAHintDuringALookDoesNotPutOffTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.pause(rest / 2)
		w.meanwhile(func(context.Context) {
			w.meanwhile(nil)
			w.topic("safe").Hint()
		})
		w.listen(t, "safe")
		synctest.Wait()
		w.pause(next)
		time.Sleep(next / 2)
		require.Equal(t, []time.Duration{0, rest / 2}, w.looked("safe"))
	})
}

func TestALookIsPutOffWhileTheStoreConfirmsWhatWasShown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		rec := kv.Record{Signature: "a", Token: 3, Revision: 7}
		w.put("safe", rec)
		w.listen(t, "safe")
		for range 5 {
			time.Sleep(next / 2)
			w.Holds("safe", rec, next)
		}
		require.Equal(t, []time.Duration{0}, w.looked("safe"))
		time.Sleep(next - 1)
		require.Equal(t, []time.Duration{0}, w.looked("safe"))
		time.Sleep(1)
		require.Equal(t, []time.Duration{0, 5*next/2 + next}, w.looked("safe"))
	})
}

func TestALookIsNotPutOffByWhatWasNotShown(t *testing.T) {
	rec := kv.Record{Signature: "a", Token: 3, Revision: 7}
	for what, other := range map[string]kv.Record{
		"another candidate's": {Signature: "b", Token: 3, Revision: 7},
		"another stretch":     {Signature: "a", Token: 4, Revision: 7},
		"another value":       {Signature: "a", Token: 3, Revision: 8},
		"nothing":             {},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.put("safe", rec)
				w.listen(t, "safe")
				time.Sleep(next / 2)
				w.Holds("safe", other, next)
				w.Holds("another safe", rec, next)
				time.Sleep(next / 2)
				require.Equal(t, []time.Duration{0, next}, w.looked("safe"))
			})
		})
	}
}

func TestAHintIsFollowedThoughTheLookWasPutOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		rec := kv.Record{Signature: "a", Token: 3, Revision: 7}
		w.put("safe", rec)
		w.listen(t, "safe")
		synctest.Wait()
		w.topic("safe").Hint() // within the rest
		w.Holds("safe", rec, next)
		time.Sleep(next / 2)
		require.Equal(t, []time.Duration{0, rest}, w.looked("safe"))
		w.Holds("safe", rec, next)
		time.Sleep(next / 4)
		w.topic("safe").Hint()
		require.Equal(t, []time.Duration{0, rest, next * 3 / 4}, w.looked("safe"))
	})
}

func TestALookIsNeverCalledForSoonerByAConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		rec := kv.Record{Signature: "a", Token: 3, Revision: 7}
		w.put("safe", rec)
		w.listen(t, "safe")
		synctest.Wait()
		w.Holds("safe", rec, next/10)
		time.Sleep(next)
		require.Equal(t, []time.Duration{0, next}, w.looked("safe"))
	})
}
