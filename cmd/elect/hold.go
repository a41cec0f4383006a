package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// A hold is what keeps an election closed beyond its leader's term.
type hold struct {
	ID      string    `json:"id"`
	Since   time.Time `json:"since,omitzero"` // by its own wall clock
	Until   time.Time `json:"until,omitzero"` // about when it is over, by the same clock
	Foreign bool      `json:"foreign,omitempty"`
}

// holdOn adds what keeps the election closed. What cannot be found out is said, and no
// failure.
func holdOn(ctx context.Context, store *stores.Store, s *state, log io.Writer) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %v", probeTime))
	defer cancel()
	h, err := election.CurrentHold(ctx, store.KV, s.Name)
	switch {
	case err == nil:
		s.Hold = &hold{ID: h.ID, Since: h.Since.UTC(), Until: h.Until.UTC(), Foreign: h.Foreign}
	case !errors.Is(err, election.ErrNoHold) && !errors.Is(err, kv.ErrInvalid): // no safe, no hold
		fmt.Fprintf(log, "elect: %s: cannot tell whether a hold keeps it closed: %s\n", printable(s.Name), oneLine(err))
	}
}

// describe says in words until when the election is closed, if it is.
func (h *hold) describe() string {
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
