//go:build !linux

package boottime

import "time"

// Now returns the wall clock's time since 1970.
func Now() time.Duration {
	return time.Duration(time.Now().UnixNano())
}
