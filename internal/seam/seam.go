// Package seam is where the rooms of the engine's tests touch the engine: what
// only its own package's tests can do with a candidate, handed to those rooms by
// the tests of that package. All else the rooms do as any user does.
package seam

import (
	"testing"
	"time"

	"github.com/electkv/election"
)

// An Engine is what tests can do with a candidate and a term, and users cannot.
type Engine struct {
	// SetClock gives a candidate a host's two clocks.
	SetClock func(c *election.Candidate, read func() (mono, boot time.Duration))
	// SetJitter sets where a candidate's jitter comes from: draw returns one of [0, n).
	SetJitter func(c *election.Candidate, draw func(n time.Duration) time.Duration)
	// Margin returns the margin that a candidate keeps.
	Margin func(c *election.Candidate) time.Duration
	// Trust returns what the boot clock showed when the request was sent from which
	// the term's trust is counted, and for how long that is.
	Trust func(term *election.Term) (sent, span time.Duration)
}

// Orders returns the orders of succession that the package provides, by name.
func Orders() map[string]election.Succession {
	return map[string]election.Succession{
		"first": election.FirstCome,
		"rank":  election.ByRank,
		"ring":  election.Ring,
		"list":  election.ByList,
	}
}

// Quiet is a test that leaves out what rapid has to say of each schedule that
// passes.
type Quiet struct{ *testing.T }

// Logf implements [testing.TB].
func (q Quiet) Logf(format string, args ...any) {
	if q.Failed() {
		q.T.Logf(format, args...)
	}
}
