package election

import (
	"time"

	"github.com/electkv/election/internal/machine"
)

// A Status is what a candidate is at one moment.
type Status struct {
	// Role is RoleLeader exactly if the candidate leads, as IsLeader has it: while it waits
	// for the election to open (Options.Hold), it is RoleCandidate.
	Role Role

	Token     uint64        // of its term; zero if it does not lead
	Remaining time.Duration // for how long the lease can be trusted without another refresh; zero if it does not lead

	// Overdue is for how long the work of its last term has gone on although another may
	// lead: since the TTL of the last refresh was over, or since a margin after the record was
	// found gone. It is zero if the work has stopped (lead has returned, or Term.Resign was
	// called), or if the lease is kept for it. A process that is overdue ignores the end of
	// Term.Context: kill it.
	Overdue time.Duration

	// Contact is when the store last gave the candidate's campaign a clear answer, or a
	// watch showed something. It is zero if that never happened. A candidate that only
	// waits asks the store little, and hears from it when something changes.
	Contact time.Time
}

// Status returns what the candidate is at this very moment. It reads the clock, as
// [Term.Err] does, and changes nothing. It may be called at any time and by any goroutine, and
// waits for no request.
func (c *Candidate) Status() Status {
	s := Status{Role: c.roles.now()}
	if t := c.newest.Load(); t != nil {
		left, over := t.standing()
		if left > 0 {
			s.Role, s.Token, s.Remaining = RoleLeader, t.token, left
		}
		s.Overdue = over
	}
	switch {
	case s.Role != RoleLeader || s.Remaining > 0:
	case c.opts.Hold > 0:
		s.Role = RoleCandidate
	default:
		s.Role = RoleIdle // its term has just ended
	}
	if at := c.contact.Load(); at != 0 {
		s.Contact = time.UnixMilli(at)
	}
	return s
}

// Name returns the name of the candidate's election.
func (c *Candidate) Name() string { return c.name }

// ID returns the candidate's ID (Options.ID).
func (c *Candidate) ID() string { return c.opts.ID }

// TTL returns how long a leader that vanished keeps others out (Options.TTL).
func (c *Candidate) TTL() time.Duration { return c.opts.TTL }

// Margin returns within what time after the end of its context a leader's work has to stop
// (Options.Margin).
func (c *Candidate) Margin() time.Duration { return c.pace.Margin }

// Remaining returns for how long the lease can be trusted without another refresh: zero if the
// term has ended. It reads the clock, and counts the time that the system was suspended.
func (t *Term) Remaining() time.Duration {
	left, _ := t.standing()
	return left
}

// standing returns for how long the lease can be trusted, and for how long the work is overdue.
func (t *Term) standing() (left, over time.Duration) {
	now := t.c.clock.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		left = max(t.trust.Left(now), 0)
	}
	if !t.stopped {
		over = max(-t.lease.Left(now), 0)
	}
	return left, over
}

// keep notes that the store keeps others out, also when the term has ended and its work goes on.
func (t *Term) keep(lease machine.Trust) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = lease
}

// kept reports whether the store should still keep others out, as far as is known.
func (t *Term) kept() bool {
	now := t.c.clock.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease.Left(now) > 0
}

// miss notes that the record is gone. The work has a margin to stop in, as after an expiry.
func (t *Term) miss(now machine.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed {
		return
	}
	t.missed = true
	if margin := t.c.pace.Margin; t.lease.Left(now) > margin {
		t.lease = machine.Trust{Sent: now, Span: margin}
	}
}

// stop notes that the work has stopped.
func (t *Term) stop() {
	t.drain.finish()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// heard notes that the store has answered.
func (c *Candidate) heard() { c.contact.Store(time.Now().UnixMilli()) }
