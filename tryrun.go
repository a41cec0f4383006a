package election

import (
	"context"
	"errors"
)

// TryRun makes one attempt to be elected, as [Candidate.TryCampaign] does, and calls
// lead for that one term, as Run does. It does not wait, and does not campaign
// again. It is for work that is started on every host, by cron for example, and that
// only one of them should do.
//
// It returns lead's result if lead returned while it still led. If the term ended
// before, TryRun returns why: the error matches [ErrLost] or [ErrResigned], and lead's
// result is dropped. After ctx ended it returns ctx's cause, in an error that matches
// [ErrStopped] too. If lead was not called the error is that of TryCampaign: it
// matches [ErrHeld] if another has the safe, or if a hold (Options.Hold) keeps
// the election closed.
func (c *Candidate) TryRun(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if lead == nil {
		return errors.New("election: lead is nil: give TryRun the work to do")
	}
	defer c.part()
	term, err := c.try(ctx, ctx, entry{drain: true})
	switch {
	case err != nil && ctx.Err() != nil:
		return stopped{context.Cause(ctx)}
	case err != nil:
		return err
	}
	o := c.serve(ctx, term, lead)
	if o.stopped == nil && o.ended == nil {
		return o.result
	}
	c.dropped(o.result)
	if o.stopped != nil {
		return stopped{o.stopped}
	}
	return o.ended
}
