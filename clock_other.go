//go:build !linux

package election

import "time"

// bootClock reads the wall clock, the only one of Go's that goes on through a
// suspend on these systems. If somebody sets it forward, a leader may step down
// without need; if somebody sets it back, the monotonic clock decides.
func bootClock() time.Duration {
	return time.Duration(time.Now().UnixNano())
}
