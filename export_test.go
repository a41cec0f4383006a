package election

import "time"

// SetClock gives the candidate a host's two clocks: read returns what they show.
func (c *Candidate) SetClock(read func() (mono, boot time.Duration)) {
	c.clock.read = read
}

// SetJitter sets where jitter comes from: draw returns one of [0, n).
func (c *Candidate) SetJitter(draw func(n time.Duration) time.Duration) { c.pace.jitter = draw }

// Trust returns what the boot clock showed when the request was sent from which
// the term's trust is counted, and for how long that is.
func (t *Term) Trust() (sent, span time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trust.Sent.Boot, t.trust.Span
}

// MarginOf returns the margin that a candidate keeps.
func MarginOf(c *Candidate) time.Duration { return c.pace.Margin }
