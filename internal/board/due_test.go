package board_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
