package kvtest

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/stretchr/testify/require"
)

func goroutines() int { return runtime.NumGoroutine() }

// settles requires that the number of goroutines comes back to what it was
// before, but for a few.
func (t *trial) settles(before, few int) {
	t.Helper()
	for deadline := time.Now().Add(promptly); goroutines() > before+few; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			var stacks bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			require.FailNow(t, "goroutines are left behind", "%d before, %d now\n%s", before, goroutines(), stacks.String())
		}
	}
}
