package main

import (
	"time"

	"github.com/electkv/election/internal/boottime"
)

// now is the clock that all processes of a host share.
func now() time.Duration { return boottime.Now() }
