package election

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// Where a store has lines (kv.Queue) a campaign that finds the safe held takes a
// place in line, and keeps it while it waits: the place becomes the record in the
// safe when those before it have gone, whether or not anybody looks.

// inLine reports whether the campaign has a place.
func (c *campaign) inLine() bool { return c.place.Signature != "" }

// lineUp has the campaign join the line soon, when a watch shows that somebody
// else has the safe.
func (c *campaign) lineUp() {
	if c.lines != nil && !c.behind && !c.inLine() {
		c.staying.Reset(0)
	}
	c.behind = true
}

// queue joins the line, or stays in it. It returns a mandate if the campaign's
// place turns out to be the first.
func (c *campaign) queue(ctx context.Context) (mandate, error) {
	if err := c.healthy(ctx); err != nil {
		c.fault(ctx, "not healthy enough to wait in line", err)
		c.staying.Reset(c.wait.pause())
		c.leave(ctx)
		return mandate{}, errWait
	}
	if c.inLine() {
		return c.stay(ctx)
	}
	return c.join(ctx)
}

// join takes a place. After an answer that is not clear the place may be there:
// then the next join finds it, and it is worth no more than the first that it may
// be of.
func (c *campaign) join(ctx context.Context) (mandate, error) {
	c.renew()
	if c.doubt && c.mandate(c.draft, c.since).trust.left(c.clock()) <= 0 {
		c.forget() // what is found under this signature would be worth nothing
	}
	if c.brief(); c.opts.Succession == nil {
		c.draft.Note = "" // a place may be old when it comes to lead
	}
	attempt, cancel := c.patiently(ctx)
	defer cancel()
	c.asked = true
	sent := c.clock()
	place, err := c.lines.Join(attempt, c.name, c.draft)
	switch {
	case err == nil:
		if c.doubt {
			sent = c.since
		}
		c.place, c.stayed, c.unsure = place, sent, false
		c.wait.reset()
		c.staying.Reset(c.pace.refresh - c.clock().mono.Sub(sent.mono))
		c.log.DebugContext(ctx, "waiting in line", "token", place.Token)
		return mandate{}, errWait
	case errors.Is(err, errors.ErrUnsupported):
		c.lines = nil
		return mandate{}, errWait
	case errors.Is(err, kv.ErrInvalid):
		return mandate{}, err
	}
	c.unclear(sent)
	c.unsure = true
	c.fault(ctx, "cannot tell whether there is a place in line", err)
	c.staying.Reset(c.wait.pause())
	return mandate{}, errWait
}

// stay keeps the place alive, as a refresh does a record, for as long as the store
// confirms it. A place that could not be trusted if its turn came is left to fade:
// to keep it might keep everybody out for ever.
func (c *campaign) stay(ctx context.Context) (mandate, error) {
	if c.mandate(c.place, c.stayed).trust.left(c.clock()) <= 0 {
		c.fault(ctx, "the place in line was not confirmed in time", errLate)
		c.forget()
		c.staying.Reset(c.wait.pause())
		return mandate{}, errWait
	}
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	sent := c.clock()
	place, leads, err := c.lines.Stay(attempt, c.name, c.place)
	switch {
	case err == nil:
		c.place, c.stayed = place, sent
		c.wait.reset()
		c.staying.Reset(c.pace.refresh - c.clock().mono.Sub(sent.mono))
		if leads {
			return c.accept(place, sent)
		}
	case errors.Is(err, kv.ErrStale):
		c.fault(ctx, "the place in line is lost", err)
		c.forget()
		c.staying.Reset(c.wait.pause())
	default:
		c.fault(ctx, "cannot tell whether the place in line is kept", err)
		c.staying.Reset(c.wait.pause())
	}
	return mandate{}, errWait
}

// leave gives the place up, if there is one. Whether or not the store says that it
// is gone, nobody leads by it any more: what was asked may yet be carried out. A
// place that is still there fades.
func (c *campaign) leave(ctx context.Context) {
	if !c.inLine() {
		return
	}
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	if err := c.discard(attempt, c.place); err != nil {
		c.fault(ctx, "cannot tell whether the place in line is given up", err)
	}
	c.forget()
}
