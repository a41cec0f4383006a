package consulkv

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// ObservedOptions tune an [Observed]. The zero value means the defaults. All
// candidates of an election use the same Prefix, and all of them an Observed.
type ObservedOptions struct {
	// Prefix and Backstop are those of [Options].
	Prefix   string
	Backstop time.Duration
}

// An Observed is a [kv.Store] in Consul whose records have no session: their
// observers judge when they have expired. Use [NewObserved] to make one. The package
// documentation says when to choose it.
//
// It remembers since when it has seen which record, in memory. Any number of them may
// share the client and the safes, but each has to see every record for itself: share one
// Observed within a process.
//
// It has no Guard: every refresh changes the ModifyIndex, no session holds the key, and a
// transaction of Consul can compare nothing else. Have resources check the token.
type Observed struct{ *observer.Store }

var _ kv.Store = (*Observed)(nil)

// NewObserved returns a store that uses the client and never closes it. The client's
// address, TLS, token, namespace and datacenter are those of the store. Options may
// be nil.
func NewObserved(client *api.Client, opts *ObservedOptions) *Observed {
	var o Options
	if opts != nil {
		o = Options{Prefix: opts.Prefix, Backstop: opts.Backstop}
	}
	return &Observed{observer.New(newRegister(client, &o), nil)}
}
