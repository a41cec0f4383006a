package paxoskv

import (
	"slices"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// NewOn is New over a transport of the test's, with ids of any form.
func NewOn(opts Options, incarnation uint64, transport lease.Transport) (*Store, error) {
	opts = opts.defaults()
	terms := lease.Terms{Cluster: opts.Cluster, MaxTTL: opts.MaxTTL, Round: opts.Round, Drift: opts.Drift}
	for _, id := range opts.Peers {
		terms.Members = append(terms.Members, lease.MemberID(id))
	}
	slices.Sort(terms.Members)
	return start(opts, terms, lease.Proposer{Terms: terms, Self: lease.MemberID(opts.ID), Incarnation: incarnation}, transport)
}

// Known returns how many safes the acceptor knows.
func (s *Store) Known() int {
	s.granting.Lock()
	defer s.granting.Unlock()
	return s.acceptor.Forget(0)
}
