package election

import (
	"context"
	"fmt"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// TryCampaign makes one attempt to be elected, and does not wait. If another has the
// safe, or a hold keeps the election closed (Options.Hold), the error matches [ErrHeld]
// and names the holder if it is known. If the health check fails, the error wraps that.
// After any other error the store's answer was not clear, or came too late. Then
// TryCampaign removes what it may have written, within a third of the TTL each for the
// safe and the hold, if the store answers. Each request may take a third of the TTL, and
// ctx bounds them all. The term is like one of Campaign. The succession is ignored.
//
// Where observers judge expiry, a single attempt never takes over from a leader that
// died, because it has not watched the record.
func (c *Candidate) TryCampaign(ctx context.Context) (*Term, error) {
	term, err := c.try(ctx, context.WithoutCancel(ctx), entry{})
	if err != nil {
		c.part()
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

// whoHolds returns an ErrHeld for a claim that was just refused. It reads the safe to name
// the holder. If it cannot, the error names no holder.
func (c *campaign) whoHolds(ctx context.Context) error {
	var rec kv.Record
	err := c.attempt(ctx, func(ctx context.Context) (err error) {
		rec, err = c.observed().Get(ctx, c.name)
		return err
	})
	if err != nil {
		rec = kv.Record{}
	}
	return heldBy(machine.Lead, rec)
}
