//go:build !unix

package kvtest

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
