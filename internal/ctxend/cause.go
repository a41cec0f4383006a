// Package ctxend tells of a context's end in the error of a call that the context bounds.
package ctxend

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// moment is how far a client may be ahead of a context whose deadline it looks at.
const moment = time.Second

// Cause returns why ctx has ended, or nil. A client or a socket that was given ctx's deadline
// may be a moment ahead of ctx: once the deadline has passed, Cause waits for ctx to end. It waits
// no longer than a second: a deadline without a monotonic reading has passed when the wall clock was
// set forward, and ctx goes on.
func Cause(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		late := time.NewTimer(moment)
		defer late.Stop()
		select {
		case <-ctx.Done():
		case <-late.C:
		}
	}
	return context.Cause(ctx)
}

// Wrap returns the error of a call, whatever a client has made of it: once ctx has ended it matches
// ctx's cause as well.
func Wrap(ctx context.Context, err error) error {
	if cause := Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}
