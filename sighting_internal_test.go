package election

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestContextsThatOutlastAnotherLeaveNothingWithIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for range 1000 {
		_, stop := outlasting(ctx, time.Hour)
		stop()
	}
	before := runtime.NumGoroutine()
	cancel()
	require.LessOrEqual(t, runtime.NumGoroutine(), before+10, "nobody is told any more")
}
