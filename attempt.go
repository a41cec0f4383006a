package election

import (
	"context"
	"errors"
	"fmt"
)

// insist retries something that must be done even if ctx has ended, for as
// long as one request may take.
func (c *Candidate) insist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.pace.Attempt)
	defer cancel()
	return c.retry(ctx, do)
}

// retry tries again until ctx ends.
func (c *Candidate) retry(ctx context.Context, do func(context.Context) error) error {
	retry := c.pace.backoff()
	err := do(ctx)
	for err != nil && ctx.Err() == nil {
		sleep(ctx, retry.pause())
		if ctx.Err() == nil {
			err = do(ctx)
		}
	}
	return err
}

// attempt makes one request, with the usual time limit.
func (c *Candidate) attempt(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.pace.Attempt)
	defer cancel()
	return do(ctx)
}

// causeOf returns an error that is both a context's error and its cause.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
