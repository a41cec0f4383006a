package consulkv

import (
	"context"
	"time"
)

// A pace limits how often a loop turns: not at all as long as turns are rare,
// and to a steady few once they are not.
type pace struct{ due time.Time }

const (
	paceBurst = 10                     // turns that may follow each other at once
	paceEvery = 250 * time.Millisecond // and then one each
)

// turn counts a turn at now, and returns how long to wait before it.
func (p *pace) turn(now time.Time) time.Duration {
	if earliest := now.Add(-paceBurst * paceEvery); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(paceEvery)
	return max(0, p.due.Sub(now))
}

// sleep waits, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
