package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A contender is one way to elect a leader on a store: this library with certain
// options, a peer, or the least that the store itself needs.
type contender struct {
	Name  string
	Store string
	Kind  kind
	How   string // what a reader has to know of how it is run
	open  func(seat seat) (family, error)
}

// A kind says what a contender is compared as.
type kind string

const (
	ours  kind = "ours"
	peer  kind = "peer"
	limit kind = "limit" // the fewest steps that the store allows
	bare  kind = "bare"  // the harness alone
)

// A family makes the candidates of one process, which share its client.
type family interface {
	candidate(place place) (candidate, error)
	close()
}

// A place is which candidate it is, and where it stands.
type place struct {
	Election string
	Index    int // of the candidate, from 0
	Of       int // how many candidates there are
}

func (p place) id() string { return fmt.Sprintf("candidate-%d", p.Index) }

// A candidate stands in one election. It may be used again when what it held is
// released.
type candidate interface {
	acquire(ctx context.Context) (*held, error)
}

// A held is what a candidate has acquired.
type held struct {
	release func(ctx context.Context) error
	lost    <-chan struct{}  // closed when the candidate takes it for lost
	until   func() time.Time // until when it is trusted; nil where a peer does not tell
}

// contenders returns all there are, in the order of the tables: store by store, this
// library first.
func contenders() []contender {
	all := slices.Concat(ownContenders(), etcdPeers(), consulPeers(), redisPeers(), clientGoPeers(), bareContenders())
	slices.SortStableFunc(all, func(a, b contender) int {
		return slices.Index(storeNames, a.Store) - slices.Index(storeNames, b.Store)
	})
	return all
}

func contenderNamed(store, name string) (contender, error) {
	for _, c := range contenders() {
		if c.Store == store && c.Name == name {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("bench: there is no contender %q on %s", name, store)
}
