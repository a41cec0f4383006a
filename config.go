package election

import (
	"fmt"
	"math"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// config returns what does not change in a campaign.
func (c *Candidate) config(s entry) *machine.Config {
	cfg := &machine.Config{
		ID: c.opts.ID, Nonce: nonce(), Value: c.opts.Value, Rank: c.opts.Rank, Heirs: c.opts.Heirs,
		Seed:   uint64(c.pace.jitter(math.MaxInt64)), //nolint:gosec // never negative
		NoHeir: c.noHeir(s),
		Health: c.opts.Health != nil,
		Lines:  keepsLines(c.store),
		Steps:  !handsOver(c.store),
		Timing: c.pace.Timing,

		Stability: c.opts.Stability,
		MaxTerm:   c.opts.MaxTerm,
	}
	if order := c.opts.Succession; order != nil && !order.isFirstCome() {
		cfg.Order = func(leader, a, b machine.Contender) bool {
			return order(Contender(leader), Contender(a), Contender(b))
		}
	}
	cfg.Fading = c.fading()
	return cfg
}

// noHeir reports whether there is to be no heir.
func (c *Candidate) noHeir(s entry) bool {
	return c.opts.NoHeir || s.once && c.opts.Succession == nil
}

// keepsLines reports whether candidates wait in line for the store's safes.
func keepsLines(store kv.Store) bool {
	_, ok := store.(kv.Queue)
	return ok
}

// checkLines refuses a wrapper that hides the lines of what it wraps. New has asked the store
// for the TTL.
func checkLines(store kv.Store, ttl time.Duration) error {
	if life, _ := store.Lifetime(ttl); !life.Queue || keepsLines(store) {
		return nil
	}
	return fmt.Errorf("election: %T hides that candidates of the store that it wraps wait in line (kv.Queue): "+
		"they would stand beside the line, and not be elected while others wait; "+
		"give it Join and Stay, or embed the store's own type in place of kv.Store", store)
}

// handsOver reports whether a safe of the store can be handed over in one step.
func handsOver(store kv.Store) bool {
	_, ok := store.(kv.HandOver)
	return ok
}

// fading returns for how long a record may outlive its owner's last refresh.
func (c *Candidate) fading() time.Duration {
	life, _ := c.store.Lifetime(c.opts.TTL) // for which New has asked
	return life.Max
}
