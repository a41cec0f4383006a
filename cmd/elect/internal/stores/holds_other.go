//go:build !linux

package stores

import "os"

// openBelow needs Linux's /proc/self/fd. Elsewhere a record in a directory ends
// with the process of its leader.
func openBelow(string) []*os.File { return nil }
