package rediskv

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// Observed is a [kv.Store] in Redis in which no clock of a server's ends a record:
// its observers do, by clocks of their own. See "Expiry judged by observers" in the
// package documentation. Use [NewObserved] to make one.
type Observed struct {
	*observer.Store
	register *register
}

var _ kv.Store = (*Observed)(nil)

// NewObserved returns a store that uses the client as one of [New] does. The opts
// may be nil; plain values are refused. All candidates of an election have to use
// it: to those of a [Store] its records are somebody else's locks, as theirs are to
// it.
func NewObserved(client redis.UniversalClient, opts *Options) *Observed {
	r := newRegister(client, opts)
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
