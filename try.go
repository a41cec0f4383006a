package election

import (
	"context"
	"fmt"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// TryCampaign makes one attempt to be elected, and waits for nobody. If somebody
// else has the safe, or a hold keeps the election closed (Options.Hold), the error
// matches [ErrHeld] and says whose it is, if the store tells; if the health check
// fails, it wraps that; after any other error the store's answer was not clear, or
// came too late, and what may have been written is removed, within a third of the
// TTL for each of the safe and the hold if the store answers. Each request has a
// third of the TTL, and ctx bounds them all. The term is like one of Campaign. A
// succession is not asked.
//
// Where observers judge expiry, one attempt alone never takes over from a leader that
// died: it has not watched the record.
func (c *Candidate) TryCampaign(ctx context.Context) (*Term, error) {
	term, err := c.try(ctx, context.WithoutCancel(ctx), entry{})
	if err != nil {
		c.flush()
	}
	return term, err
}

func (c *Candidate) try(ctx, base context.Context, s entry) (*Term, error) {
	if err := c.openNow(ctx); err != nil {
		return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
	}
	s.once = true
	term, err := c.campaign(ctx, base, s)
	if err != nil {
		return nil, err
	}
	c.flush() // as in elect
	return c.closeNow(ctx, term)
}

// whoHolds returns an ErrHeld for a safe that was just refused. It asks the store
// whose it is; if that does not tell, nobody is named.
func (c *Candidate) whoHolds(ctx context.Context) error {
	var rec kv.Record
	err := c.attempt(ctx, func(ctx context.Context) (err error) {
		rec, err = c.store.Get(ctx, c.name)
		return err
	})
	if err != nil {
		rec = kv.Record{}
	}
	return heldBy(machine.Lead, rec)
}
