package consulkv

import (
	"context"
	"time"
)

// A pace limits how often something is done: not at all as long as that is rare,
// and to a steady few once it is not.
type pace struct{ due time.Time }

// The pace of one watch: so many turns at once, and then one each.
const (
	paceBurst = 10
	paceEvery = 250 * time.Millisecond
)

// turn counts a turn at now, and returns how long to wait before it.
func (p *pace) turn(now time.Time, burst int, every time.Duration) time.Duration {
	if earliest := now.Add(time.Duration(-burst) * every); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(every)
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
