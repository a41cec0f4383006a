package election

import "context"

// Callbacks are for programs that start and stop their work from two places. Any
// of them may be nil.
type Callbacks struct {
	// OnElected is called when a term begins. It may do the work itself, until
	// its context ends, or start it and return.
	OnElected func(ctx context.Context, term *Term)

	// OnDefeated is called once for each OnElected, after that has returned and
	// the term or Notify's context has ended; cause says why. It must return only
	// when the work has stopped, since the safe is freed then.
	OnDefeated func(cause error)
}

// Notify campaigns until ctx ends and calls back at the beginning and the end of
// each term: one call at a time, on the caller's goroutine. It is a thin layer over
// [Candidate.Run], and returns as Run does, with ctx's cause.
func (c *Candidate) Notify(ctx context.Context, cb Callbacks) error {
	return c.Run(ctx, func(ctx context.Context, term *Term) error {
		if cb.OnElected != nil {
			cb.OnElected(ctx, term)
		}
		<-ctx.Done()
		if cb.OnDefeated != nil {
			cb.OnDefeated(context.Cause(ctx))
		}
		return nil
	})
}
