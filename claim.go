package election

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// A mandate is what a campaign wins: a record in the safe, and how long to trust
// it.
type mandate struct {
	rec   kv.Record
	trust trust
}

// errLate means that our record is there, but the store's answer was so long on
// its way that the lease cannot be trusted any more.
var errLate = errors.New("election: the store's answer came too late to be trusted")

// claim makes one attempt on a safe that was seen vacant, or removes our record
// if it is there and came too late. It returns an error that says why there is
// no mandate yet.
func (c *campaign) claim(ctx context.Context) (mandate, error) {
	if c.late.Signature != "" {
		return mandate{}, c.remove(ctx)
	}
	if err := c.healthy(ctx); err != nil {
		c.fault(ctx, "not healthy enough to lead", err)
		return mandate{}, err
	}
	return c.create(ctx)
}

// create tries to put the signature in. After an answer that is not clear our
// record may be there, now or later: then a watch shows it, and adopt decides.
// Meanwhile another create under the same signature does no harm.
func (c *campaign) create(ctx context.Context) (mandate, error) {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	c.asked = true
	sent := c.clock()
	rec, err := c.store.Create(attempt, c.name, c.draft)
	switch {
	case err == nil:
		return c.accept(rec, sent)
	case errors.Is(err, kv.ErrHeld), errors.Is(err, kv.ErrInvalid):
		return mandate{}, err
	}
	if !c.doubt {
		c.doubt, c.since = true, sent
	}
	c.fault(ctx, "cannot tell whether the claim was carried out", err)
	return mandate{}, err
}

// adopt decides on a record that a watch shows to be ours though no create told
// us so. It is as good as a late answer: trust is counted from the send of the
// first create that it may be of.
func (c *campaign) adopt(rec kv.Record) (mandate, error) {
	if !c.doubt {
		c.late = rec
		return mandate{}, errLate
	}
	return c.accept(rec, c.since)
}

// accept takes the mandate, unless the answer came too late. It is not refreshed
// first: a campaign that refreshed what it cannot trust could keep everybody out
// for ever, and a store may have begun to end a record that is older than its
// TTL, and grant a refresh all the same (Consul does).
func (c *campaign) accept(rec kv.Record, sent instant) (mandate, error) {
	m := mandate{rec, trust{sent: sent, span: rec.TTL - c.pace.margin}}
	if m.trust.left(c.clock()) <= 0 {
		c.late = rec
		return mandate{}, errLate
	}
	return m, nil
}

// remove deletes our record that came too late, and with it ends its signature.
func (c *campaign) remove(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	err := c.store.Delete(attempt, c.name, c.late)
	if err != nil && !errors.Is(err, kv.ErrStale) {
		c.fault(ctx, "cannot remove a record of our own that came too late", err)
		return err
	}
	// A slow watch may still show what was removed: it must not be taken for what
	// the next create puts in.
	c.draft.Signature = newSignature(c.opts.ID)
	c.late, c.doubt = kv.Record{}, false
	return errLate
}

// withdraw removes what the campaign may have left in the safe, whether or not
// ctx has ended. A create that is still on its way is beyond its reach: its
// record fades, as nobody refreshes it.
func (c *campaign) withdraw(ctx context.Context) {
	if !c.asked {
		return
	}
	err := c.insist(ctx, func(ctx context.Context) error {
		rec, err := c.store.Get(ctx, c.name)
		if err == nil && c.mine(rec) {
			err = c.store.Delete(ctx, c.name, rec)
		}
		if errors.Is(err, kv.ErrVacant) || errors.Is(err, kv.ErrStale) {
			return nil
		}
		return err
	})
	if err != nil {
		c.log.WarnContext(ctx, "withdrew, but cannot tell whether a record is left to fade", "error", err)
	}
}

// mine reports whether a record is of this campaign.
func (c *campaign) mine(rec kv.Record) bool {
	return !rec.Foreign && rec.Signature == c.draft.Signature
}
