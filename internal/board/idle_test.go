package board_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// few is how many goroutines may come and go: those of the runtime and of earlier tests, and those
// that have ended and that the runtime is about to move to another list, up to 33 for each thread.
const few = 100

// settled returns how many goroutines there are when those that end have ended.
func settled() int {
	for range 100 {
		synctest.Wait()
		time.Sleep(1)
		runtime.Gosched()
	}
	return runtime.NumGoroutine()
}

func TestWhileNothingHappensThereAreNoGoroutines(t *testing.T) {
	// While garbage is collected, the runtime may count goroutines that have ended.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	bubble(t, func(t *testing.T, w *world) {
		before := settled()
		var crowd []*listener
		for i := range 1000 {
			crowd = append(crowd, w.listen(t, fmt.Sprint("safe ", i)))
		}
		time.Sleep(next / 2)
		require.Less(t, settled(), before+few)
		for _, l := range crowd {
			require.Equal(t, []told{vacant}, l.heard())
		}
		time.Sleep(next)
		require.Less(t, settled(), before+few, "after all looks were due")
		for _, l := range crowd {
			l.stop()
		}
		require.Less(t, settled(), before+few)
		require.Len(t, w.saw(), 2000)
	})
}
