package election

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	if c.handed.Signature != "" {
		return c.inherit(ctx, c.handed)
	}
	if err := c.healthy(ctx); err != nil {
		c.fault(ctx, "not healthy enough to lead", err)
		c.stand.heir.giveUp(err)
		c.roles.is(RoleOrdinary)
		return mandate{}, err
	}
	c.roles.is(c.stand.role())
	c.brief()
	return c.create(ctx)
}

// create tries to put the signature in. After an answer that is not clear our
// record may be there, now or later: then a watch shows it, and adopt decides.
// Meanwhile another create under the same signature does no harm.
func (c *campaign) create(ctx context.Context) (mandate, error) {
	c.renew()
	attempt, cancel := c.patiently(ctx)
	defer cancel()
	c.asked = true
	sent := c.clock()
	rec, err := c.put(attempt)
	switch {
	case err == nil:
		return c.accept(rec, sent)
	case errors.Is(err, kv.ErrStale): // the heir to be displaced is not as it was seen
		c.spent = true
		return mandate{}, err
	case errors.Is(err, kv.ErrHeld):
		c.refused(ctx, err)
		c.spent = true
		return mandate{}, err
	case errors.Is(err, kv.ErrInvalid):
		return mandate{}, err
	}
	c.unclear(sent)
	c.fault(ctx, "cannot tell whether the claim was carried out", err)
	c.incapable(err)
	return mandate{}, err
}

// patiently returns the context of a request that may leave a record. A request that is
// given up may be carried out later, when nobody looks for its record any more. So it
// goes on when ctx has ended, for half of the time that the campaign has to withdraw.
func (c *campaign) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, stop := outlasting(ctx, c.pace.attempt/2)
	bounded, cancel := context.WithTimeout(longer, c.pace.attempt)
	return bounded, func() {
		cancel()
		stop()
	}
}

// incapable has an heir give up its place if its claims have failed for a TTL: it
// keeps all others from claiming.
func (c *campaign) incapable(err error) {
	if c.failed.IsZero() {
		c.failed = time.Now()
	}
	if time.Since(c.failed) > c.opts.TTL {
		c.stand.heir.giveUp(fmt.Errorf("cannot claim the leader's safe: %w", err))
	}
}

// put asks the store to take the draft: into a vacant safe, or in the place of an
// heir that is to be displaced, as long as that is as it was seen.
func (c *campaign) put(ctx context.Context) (kv.Record, error) {
	if c.prey.Signature != "" {
		return c.store.Swap(ctx, c.name, c.prey, c.draft)
	}
	return c.store.Create(ctx, c.name, c.draft)
}

// renew has the next request use another signature if a create was refused under
// the present one: what a late copy of that puts in is older than the next request,
// and must not be taken for what it has put in. Until then a watch may show that
// it was a copy of our own that came first, which is to be removed.
func (c *campaign) renew() {
	if c.spent && !c.doubt && !c.inLine() {
		c.forget()
	}
}

// unclear notes that a request sent at that instant may have put a record in, now
// or later. What is found of it is trusted from the first such request on.
func (c *campaign) unclear(sent instant) {
	if !c.doubt {
		c.doubt, c.since = true, sent
	}
}

// adopt decides on a record that a watch shows to be ours. It may be our place in
// line, which was kept while we waited, and is as good as when that was last
// said. If no create told us of it, it is as good as a late answer: trust is
// counted from the send of the first create that it may be of.
func (c *campaign) adopt(ctx context.Context, rec kv.Record) (mandate, error) {
	if c.place.Owns(rec) {
		if err := c.healthy(ctx); err != nil {
			c.fault(ctx, "not healthy enough to lead", err)
			c.leave(ctx)
			return mandate{}, errWait
		}
		return c.accept(rec, c.stayed)
	}
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
	m := c.mandate(rec, sent)
	if m.trust.left(c.clock()) <= 0 {
		c.late = rec
		return mandate{}, errLate
	}
	return m, nil
}

// mandate returns what a record is worth that the store had at the instant sent.
func (c *campaign) mandate(rec kv.Record, sent instant) mandate {
	return mandate{rec, trust{sent: sent, span: rec.TTL - c.pace.margin}}
}

// remove deletes our record that came too late, and with it ends its signature: a
// slow watch may still show what was removed, and it must not be taken for what
// the next create puts in.
func (c *campaign) remove(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	if err := c.discard(attempt, c.late); err != nil {
		c.fault(ctx, "cannot remove a record of our own that came too late", err)
		return err
	}
	c.forget()
	return errLate
}

// discard deletes a record of ours if it is still there.
func (c *campaign) discard(ctx context.Context, rec kv.Record) error {
	return gone(c.store.Delete(ctx, c.name, rec))
}

// gone returns the error of a delete, nil if there is nothing to delete any more.
func gone(err error) error {
	if errors.Is(err, kv.ErrStale) {
		return nil
	}
	return err
}

// forget ends the signature, and with it all that is left under it.
func (c *campaign) forget() {
	c.draft.Signature = newSignature(c.opts.ID)
	c.late, c.handed, c.place = kv.Record{}, kv.Record{}, kv.Record{}
	c.doubt, c.unsure, c.spent = false, false, false
}

// withdraw removes what the campaign may have left in the safe or in line, whether
// or not ctx has ended. If a request had no clear answer, its record may come later:
// then withdraw looks for it until its time is up. What comes after that fades, as
// nobody refreshes it.
func (c *campaign) withdraw(ctx context.Context) {
	if !c.asked && c.stand.heir == nil {
		return
	}
	err := c.insist(ctx, func(ctx context.Context) error {
		return errors.Join(c.quit(ctx), c.clear(ctx))
	})
	if err != nil {
		c.log.WarnContext(ctx, "withdrew, but cannot tell whether a record is left to fade", "error", err)
	}
}

// errMayCome is why a campaign that withdraws looks again.
var errMayCome = errors.New("election: a request without a clear answer may still be carried out")

// clear removes a record of the campaign from the safe.
func (c *campaign) clear(ctx context.Context) error {
	rec, err := c.store.Get(ctx, c.name)
	switch {
	case err == nil && (c.mine(rec) || c.stand.heir.signed(rec)):
		return c.discard(ctx, rec)
	case c.doubt && (errors.Is(err, kv.ErrVacant) || err == nil && rec == c.prey):
		return errMayCome
	case errors.Is(err, kv.ErrVacant):
		return nil
	}
	return err
}

// quit gives up the place in line, if there is one or may be.
func (c *campaign) quit(ctx context.Context) (err error) {
	if c.unsure { // a join finds what an earlier one has left
		if c.place, err = c.lines.Join(ctx, c.name, c.draft); err != nil {
			return err
		}
		c.unsure = false
	}
	if !c.inLine() {
		return nil
	}
	if err = c.discard(ctx, c.place); err == nil {
		c.place = kv.Record{}
	}
	return err
}

// mine reports whether a record is of this campaign.
func (c *campaign) mine(rec kv.Record) bool {
	return !rec.Foreign && rec.Signature == c.draft.Signature
}
