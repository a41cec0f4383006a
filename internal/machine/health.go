package machine

import "time"

// A Checkup is the health check of an owner: it is asked at the pace of the refreshes, and
// has failed if it takes longer than a request may.
type Checkup struct {
	Asked   Instant
	Pending bool
}

// healthDue returns when there is something to do about the health check.
func (c *Campaign) healthDue() time.Duration {
	switch {
	case !c.cfg.Health || c.Lead.Phase != Owner && c.Place.Phase != Owner:
		return never
	case c.Checkup.Pending:
		return c.Checkup.Asked.Mono + c.cfg.Attempt + c.cfg.Spread
	}
	return c.Checkup.Asked.Mono + c.cfg.Refresh
}

// examine has the health check asked when it is due, and ends what we own if it does not
// return.
func (t *turn) examine() {
	switch {
	case t.healthDue() > t.now.Mono:
	case t.Checkup.Pending:
		t.sick()
	default:
		t.Checkup = Checkup{Asked: t.now, Pending: true}
		t.emit(Effect{Kind: Examine})
	}
}

// sick ends what we own: the health check has failed.
func (t *turn) sick() {
	t.ends(&t.Lead, Unhealthy)
	t.ends(&t.Place, Unhealthy)
}
