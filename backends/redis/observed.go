package rediskv

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// ObservedOptions change how an [Observed] keeps its safes. The zero value is a good
// choice. All candidates of an election use the same Prefix and Quarantine, and all
// of them an Observed.
type ObservedOptions struct {
	// Prefix and Backstop are those of [Options]. A watch looks after half the TTL
	// of a record at the latest.
	Prefix   string
	Backstop time.Duration

	// Quarantine is that of [Options], but the candidates measure it, each by its own
	// clock. The first candidate that has waited that long opens the safes to all.
	Quarantine time.Duration
}

// An Observed is a [kv.Store] in Redis whose records have no expiry: their observers
// judge when they are over, by clocks of their own. Use [NewObserved] to make one.
// The package documentation says when to choose it.
//
// It remembers since when it has seen which record, in memory. Any number of them may
// share the client and the safes, but each has to see every record for itself: share one
// Observed within a process.
type Observed struct {
	*observer.Store
	register *register
}

var _ kv.Store = (*Observed)(nil)

// NewObserved returns a store that uses the client as that of [New] does. The opts
// may be nil.
func NewObserved(client redis.UniversalClient, opts *ObservedOptions) *Observed {
	var o Options
	if opts != nil {
		o = Options{Prefix: opts.Prefix, Backstop: opts.Backstop, Quarantine: opts.Quarantine}
	}
	r := newRegister(client, &o)
	return &Observed{Store: observer.New(r, nil), register: r}
}

// Eval is [Store.Eval]: a script is carried out as long as nobody has taken the
// record over.
func (o *Observed) Eval(ctx context.Context, name string, rec kv.Record, source string, keys []string, args ...any) (any, error) {
	return o.register.s.Eval(ctx, name, rec, source, keys, args...)
}

// Diagnose is [Store.Diagnose].
func (o *Observed) Diagnose(ctx context.Context) ([]Finding, error) {
	return o.register.s.Diagnose(ctx)
}
