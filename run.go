package election

import (
	"context"
	"errors"
)

// Run campaigns, and calls lead once for each term, on the caller's goroutine.
//
// The context given to lead is the term's, and also ends when ctx does. It may have ended when
// lead is called, if that happens just after the election. Until lead has returned, Run keeps the
// lease, even after ctx has ended, so that nobody else is elected before the work has stopped.
// lead must return soon after its context has ended.
//
// What happens when lead returns:
//
//   - while it still leads: Run resigns and returns lead's result;
//   - after the term ended, because it was lost, resigned or unhealthy: Run frees
//     what is left of the lease, drops lead's result, and campaigns again after
//     giving the others a moment to claim the safe first;
//   - after ctx ended: Run resigns and returns ctx's cause, in an error that matches
//     [ErrStopped] too.
//
// Otherwise Run returns an error only if the store can never do what is asked
// (kv.ErrInvalid). It logs all other trouble with the store, and goes on.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if lead == nil {
		return errors.New("election: lead is nil: give Run the work to do")
	}
	defer c.part()
	c.enlist(ctx)
	defer c.delist(context.WithoutCancel(ctx))
	r := &run{Candidate: c, lead: lead, entry: entry{drain: true}}
	for {
		term, err := c.elect(ctx, ctx, r.entry)
		if r.over(ctx, term, err) {
			return r.result
		}
	}
}

// A run is one call of Run.
type run struct {
	*Candidate
	lead   func(ctx context.Context, term *Term) error
	entry  entry // how the next campaign begins
	futile int   // terms in a row that were
	result error // of Run, once it is over
}

// over leads, if there is a term, and reports whether Run is over. It is a separate function
// to keep the stack of a goroutine that waits to be elected small: see campaign.
func (r *run) over(ctx context.Context, term *Term, err error) bool {
	switch {
	case err == nil:
		return r.ended(r.serve(ctx, term, r.lead), term)
	case ctx.Err() != nil:
		err = stopped{context.Cause(ctx)}
	}
	r.result = err
	return true
}

// ended takes in how a term has ended, and reports whether Run is over.
func (r *run) ended(o outcome, term *Term) bool {
	if o.stopped == nil && o.ended == nil {
		r.result = o.result
		return true
	}
	r.dropped(o.result)
	if o.stopped != nil {
		r.result = stopped{o.stopped}
		return true
	}
	if r.futile++; !term.futile() {
		r.futile = 0
	}
	r.entry.rest = 2*r.pace.Spread + r.pace.futility(r.futile)
	return false
}

// A stopped is a context's cause that has stopped Run.
type stopped struct{ cause error }

func (s stopped) Error() string { return s.cause.Error() }

func (s stopped) Unwrap() []error { return []error{ErrStopped, s.cause} }

// An outcome is the state when lead returned.
type outcome struct {
	result  error // lead's
	ended   error // why the term had ended, nil if it had not
	stopped error // why Run's context had ended, nil if it had not
}

// serve calls lead and then frees the safe, even if lead panics.
func (c *Candidate) serve(ctx context.Context, term *Term, lead func(context.Context, *Term) error) outcome {
	defer c.free(ctx, term, ReasonFinished)
	result := lead(term.Context(), term)
	return outcome{result: result, ended: term.Err(), stopped: context.Cause(ctx)}
}

// free releases a term whose work has stopped, or never began, for a reason unless ctx has ended. It
// tries again for a while if the store does not answer. If it still does not, the record is left to
// expire.
func (c *Candidate) free(ctx context.Context, term *Term, reason Reason) {
	if ctx.Err() != nil {
		reason = ReasonStopped
	}
	term.stop()
	term.end(ErrResigned, reason, false)
	if _, err := term.release(context.WithoutCancel(ctx), c.pace.Attempt); err != nil {
		c.log.WarnContext(ctx, "cannot free the safe: it stays closed until the record expires", "event", "record_may_be_left", "token", term.Token(), "error", err)
	}
}

// dropped logs a result of lead that Run does not return, unless it only says
// that the work was told to stop.
func (c *Candidate) dropped(result error) {
	if result != nil && result != context.Canceled { //nolint:errorlint // what wraps it may say more
		c.log.Info("the work was ended, and returned an error", "event", "work_failed", "error", result)
	}
}
