package election

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// claim makes one attempt on a safe that was seen vacant, or holds our own
// record. It returns a term, or an error that says why there is none yet.
func (c *campaign) claim(ctx context.Context) (*Term, error) {
	if err := c.healthy(ctx); err != nil {
		c.fault(ctx, "not healthy enough to lead", err)
		return nil, err
	}
	if c.unknown {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	if c.found.Signature != "" {
		return c.adopt(ctx)
	}
	return c.create(ctx)
}

// create tries to put the signature in. Its answer alone says whether that
// happened; without a clear one, the next claim begins with a look.
func (c *campaign) create(ctx context.Context) (*Term, error) {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	sent := c.clock()
	if !c.unknown {
		c.since = sent
	}
	c.asked = true
	rec, err := c.store.Create(attempt, c.name, c.draft)
	switch {
	case err == nil:
		return c.elected(ctx, rec, sent)
	case errors.Is(err, kv.ErrHeld), errors.Is(err, kv.ErrInvalid):
		return nil, err
	}
	c.unknown = true
	c.fault(ctx, "cannot tell whether the claim was carried out", err)
	return nil, err
}

// look finds out what became of a create without a clear answer.
func (c *campaign) look(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	c.found = kv.Record{}
	rec, err := c.store.Get(attempt, c.name)
	switch {
	case errors.Is(err, kv.ErrVacant):
		// Perhaps it is still on its way. Another create under the same
		// signature does no harm: one of them finds the other's record.
		c.unknown = false
		return nil
	case err != nil:
		c.fault(ctx, "cannot look into the safe", err)
		return err
	case rec.Signature == c.draft.Signature && !rec.Foreign:
		c.found = rec
		return nil
	}
	c.unknown = false
	return kv.ErrHeld
}

// adopt takes a record over that we find to be ours though no create told us so.
// Only a refresh proves it, and trust is counted from that refresh.
//
// A record that may be older than its TTL is removed instead. Its store may have
// begun to end it when the refresh came, and grant the refresh all the same
// (Consul does).
func (c *campaign) adopt(ctx context.Context) (*Term, error) {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	sent := c.clock()
	rec, err := c.store.Refresh(attempt, c.name, c.found)
	if err == nil && c.clock().since(c.since) < c.pace.ttl {
		return c.elected(ctx, rec, sent)
	}
	if err == nil {
		err = errors.Join(errLate, c.store.Delete(attempt, c.name, rec))
	}
	if errors.Is(err, kv.ErrStale) || errors.Is(err, errLate) {
		c.found, c.unknown = kv.Record{}, false
		return nil, err
	}
	c.fault(ctx, "cannot refresh the record that was found", err)
	return nil, err
}

// elected begins the term, unless the answer was so long on its way that the
// lease cannot be trusted any more: then the record has to be proven again.
func (c *campaign) elected(ctx context.Context, rec kv.Record, sent instant) (*Term, error) {
	tr := trust{sent: sent, span: rec.TTL - c.pace.margin}
	if tr.left(c.clock()) <= 0 {
		c.found = rec
		return nil, errLate
	}
	c.log.InfoContext(ctx, "elected", "token", rec.Token)
	return newTerm(c.base, c.Candidate, rec, tr, c.stand.drain), nil
}

var errLate = errors.New("election: the store's answer came too late to be trusted")

// withdraw removes what the campaign may have left in the safe, whether or not
// ctx has ended. A create that is still on its way is beyond its reach: its
// record fades, as nobody refreshes it.
func (c *campaign) withdraw(ctx context.Context) {
	if !c.asked {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.pace.attempt)
	defer cancel()
	rec, err := c.store.Get(ctx, c.name)
	if err == nil && rec.Signature == c.draft.Signature && !rec.Foreign {
		err = c.store.Delete(ctx, c.name, rec)
	}
	if err != nil && !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrStale) {
		c.log.WarnContext(ctx, "withdrew, but cannot tell whether a record is left to fade", "error", err)
	}
}
