package election

import (
	"context"
	"errors"
)

// Run campaigns, and calls lead once for each term, on the caller's goroutine.
//
// The context given to lead is the term's, and ends with ctx as well. While lead
// has not returned, the lease is kept: also when ctx has ended, so that nobody
// else is elected before the work has stopped. lead must return soon after its
// context has ended.
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
// Beyond that Run returns an error only if the store can never do what is asked
// (kv.ErrInvalid). It survives all other trouble with the store, and logs it.
func (c *Candidate) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if lead == nil {
		return errors.New("election: lead is nil: give Run the work to do")
	}
	defer c.flush()
	s, futile := entry{drain: true}, 0
	for {
		term, err := c.elect(ctx, ctx, s)
		if err == nil && ctx.Err() != nil {
			c.free(ctx, term)
		}
		if ctx.Err() != nil {
			return stopped{context.Cause(ctx)}
		}
		if err != nil {
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
		if futile++; !term.futile() {
			futile = 0
		}
		s.rest = 2*c.pace.Spread + c.pace.futility(futile)
	}
}

// A stopped is a context's cause that has stopped Run.
type stopped struct{ cause error }

func (s stopped) Error() string { return s.cause.Error() }

func (s stopped) Unwrap() []error { return []error{ErrStopped, s.cause} }

// An outcome is how things stood when lead returned.
type outcome struct {
	result  error // lead's
	ended   error // why the term had ended, nil if it had not
	stopped error // why Run's context had ended, nil if it had not
}

// serve calls lead and then frees the safe, also if lead panics.
func (c *Candidate) serve(ctx context.Context, term *Term, lead func(context.Context, *Term) error) outcome {
	defer c.free(ctx, term)
	result := lead(term.Context(), term)
	return outcome{result: result, ended: term.Err(), stopped: context.Cause(ctx)}
}

// free releases a term whose work has stopped. It tries again for a while if the
// store does not answer; then the record is left to fade.
func (c *Candidate) free(ctx context.Context, term *Term) {
	term.end(ErrResigned, false)
	if _, err := term.release(context.WithoutCancel(ctx), c.pace.Attempt); err != nil {
		c.log.WarnContext(ctx, "cannot free the safe: the record is left to fade", "token", term.Token(), "error", err)
	}
}

// dropped reports a result of lead that Run does not return, unless it says no
// more than that the work was told to stop.
func (c *Candidate) dropped(result error) {
	if result != nil && result != context.Canceled { //nolint:errorlint // what wraps it may say more
		c.log.Info("the work was ended, and returned an error", "error", result)
	}
}
