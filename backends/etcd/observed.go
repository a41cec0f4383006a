package etcdkv

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// ObservedOptions tune an [Observed]. The zero value means the defaults. All
// candidates of an election use the same Prefix and Suffix, and all of them an
// Observed.
type ObservedOptions struct {
	// Prefix, Suffix and Backstop are those of [Options].
	Prefix   string
	Suffix   string
	Backstop time.Duration
}

// An Observed is a [kv.Store] in etcd whose records have no lease: their observers
// judge when they have expired. Use [NewObserved] to make one. The package
// documentation says when to choose it.
//
// It remembers since when it has seen which record, in memory. Any number of them may
// share the client and the safes, but each has to see every record for itself: share one
// Observed within a process.
type Observed struct {
	*observer.Store
	register register
}

var _ kv.Store = (*Observed)(nil)

// NewObserved returns a store that uses the client, and never closes it. Options
// may be nil.
func NewObserved(client *clientv3.Client, opts *ObservedOptions) *Observed {
	var o Options
	if opts != nil {
		o = Options{Prefix: opts.Prefix, Suffix: opts.Suffix, Backstop: opts.Backstop}
	}
	r := newRegister(client, &o)
	return &Observed{Store: observer.New(r, nil), register: r}
}

// Guard returns the conditions that the safe holds rec, as [Store.Guard] does. A refresh
// changes nothing for them.
//
//	client.Txn(ctx).If(observed.Guard(term.NamedRecord())...).Then(…)
//
// A record has the safe until others have judged and replaced it, even if its owner has
// stopped trusting it.
func (o *Observed) Guard(name string, rec kv.Record) []clientv3.Cmp {
	return o.register.cells.Guard(name, rec)
}
