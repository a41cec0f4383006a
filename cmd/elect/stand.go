//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election"
)

// stand leads for one term without a COMMAND, for those that ask over HTTP whether this process
// leads. From the end of the term on, the answer is no. The lease is kept for another grace, so
// that they have asked and stopped before the next candidate leads.
func (r *runner) stand(ctx context.Context, term *election.Term) error {
	<-ctx.Done()
	lost := term.Err()
	_ = term.Resign(context.WithoutCancel(ctx)) // which ends the term, and frees nothing yet
	r.log.Info("the term is over: programs that ask have time to stop", "grace", r.spec.Grace)
	grace := time.NewTimer(r.spec.Grace)
	defer grace.Stop()
	<-grace.C
	switch {
	case r.ctx.Err() != nil || !r.once:
	case errors.Is(lost, election.ErrResigned):
		r.finish(exit{})
	default:
		r.finish(exit{statusFailure, lost})
	}
	return nil
}
