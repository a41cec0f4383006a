package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/internal/machine"
)

// errUnhealthy is why a candidate does not stand, or a term has ended, if the health
// check fails.
var errUnhealthy = errors.New("unhealthy")

// errSilent is the error of a health check that takes too long.
var errSilent = fmt.Errorf("%w: the check does not return", errUnhealthy)

// healthy asks the health check, if there is one.
func (c *Candidate) healthy(ctx context.Context) error {
	if c.opts.Health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.Attempt)
	defer cancel()
	err := c.opts.Health(ctx)
	if err == nil {
		err = ctx.Err() // an answer that comes too late is none
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	return nil
}

// examine asks the health check of a leader or an heir. If it does not return in time, the
// machine does not wait for it.
func (c *campaign) examine() {
	c.told.illness = errSilent
	ctx := c.aid()
	c.start(func() (then func()) {
		err := c.healthy(ctx)
		return func() {
			if err == nil {
				c.step(&machine.Event{Kind: machine.Fit})
				return
			}
			c.told.illness = err
			c.step(&machine.Event{Kind: machine.Sick})
		}
	})
}
