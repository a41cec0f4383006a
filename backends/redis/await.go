package rediskv

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/ctxend"
	"github.com/electkv/election/internal/stack"
)

// await returns what call returns, or the cause of ctx's end if that comes
// first.
//
// The client looks at a context's deadline when it begins to read from a
// connection (if its ContextTimeoutEnabled is set), and at a cancellation not at
// all until the read has ended, and it lends nobody the connection. So the call
// waits in a goroutine of its own. It ends at ctx's deadline at the latest, or
// with the client's ReadTimeout, whichever the client heeds: a cancelled request
// to a server that hangs is the one thing that outlasts a call here.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		val T
		err error
	}
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	done := make(chan outcome, 1)
	go func() {
		stack.Grow()
		val, err := call()
		done <- outcome{val, err}
	}()
	select {
	case o := <-done:
		return o.val, bounded(ctx, o.err)
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// bounded tells of ctx's end where the client tells of what came of it: a socket
// can be a moment ahead of the context whose deadline it was given.
func bounded(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	if cause := ctxend.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
