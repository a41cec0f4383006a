// Package stack spares goroutines that do one thing the growth of their stacks.
package stack

import "runtime"

// Grow has the stack of the goroutine that calls it grow to what a request to a store needs,
// while there is little on it. On the way down to a socket it would grow several times, and all
// that is on it would be moved each time.
//
//go:noinline
func Grow() {
	var room [12 << 10]byte
	runtime.KeepAlive(&room)
}
