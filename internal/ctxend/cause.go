// Package ctxend tells whether a context has ended, for callers whose client looks at the
// context's deadline itself.
package ctxend

import (
	"context"
	"time"
)

// Cause returns why ctx has ended, or nil. A client or a socket that was given ctx's deadline
// may be a moment ahead of ctx: once the deadline has passed, Cause waits for ctx to end.
func Cause(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}
