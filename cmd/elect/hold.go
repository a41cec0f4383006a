package main

import (
	"fmt"
	"time"

	"github.com/electkv/election/internal/snapshot"
)

// describeHold says in words until when the election is closed, if it is.
func describeHold(h *snapshot.Hold) string {
	switch {
	case h == nil:
		return ""
	case h.Foreign:
		return "closed by a lock where holds belong"
	case h.Until.IsZero():
		return "closed by " + printable(h.ID)
	}
	return fmt.Sprintf("closed until about %s by %s", h.Until.Local().Format(time.DateTime), printable(h.ID))
}
