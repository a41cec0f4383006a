package election

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestContextsThatOutlastAnotherLeaveNothingWithIt(t *testing.T) {
	// While garbage is collected, the runtime may count goroutines that have ended.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ctx, cancel := context.WithCancel(t.Context())
	for range 1000 {
		_, stop := outlasting(ctx, time.Hour)
		stop()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what the cancel starts has not ended when it is counted
	before := runtime.NumGoroutine()
	cancel()
	require.LessOrEqual(t, runtime.NumGoroutine(), before+100, "nobody is told any more")
}
