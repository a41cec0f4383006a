package paxoskv

import (
	"crypto/x509"
	"time"
)

// A Status is how a member or client sees its cluster.
type Status struct {
	// Members are all members, this one included.
	Members []Member
	// Majority is how many members decide.
	Majority int
	// Quarantine is for how much longer this member grants nothing because it has just
	// started. It is zero in a client.
	Quarantine time.Duration
	// QuarantineAfterStart is for how long a member that has started grants nothing.
	QuarantineAfterStart time.Duration
	// Client is set if this process is a client, not a member.
	Client bool
	// Durable is set if this member keeps on disk which tokens were given out.
	Durable bool
	// MaxTTL, Round and Drift are what the members agree on.
	MaxTTL, Round time.Duration
	Drift         int
}

// A Member is one of a cluster.
type Member struct {
	ID string
	// Connected is set if messages reach the member, as far as is known.
	Connected bool
	// Trouble says why it is not connected, nil if it is.
	Trouble error
	// Certificate is what the member showed when the connection began, nil if it is not
	// connected. It must not be changed.
	Certificate *x509.Certificate
}

// Connected is how many members can be reached.
func (s Status) Connected() int {
	n := 0
	for _, m := range s.Members {
		if m.Connected {
			n++
		}
	}
	return n
}

// Status says how this process sees the cluster at the moment. It sends no messages.
func (s *Store) Status() Status {
	st := Status{
		Majority: s.terms.Majority(), QuarantineAfterStart: s.terms.Quarantine(),
		Client: s.acceptor == nil, Durable: s.promises != nil,
		MaxTTL: s.terms.MaxTTL, Round: s.terms.Round, Drift: s.terms.Drift,
	}
	if !st.Client {
		st.Quarantine = s.Quarantined()
	}
	if node, ok := s.transport.(transport); ok {
		for _, p := range node.Peers() {
			m := Member{ID: p.Member, Connected: p.Connected, Certificate: p.Certificate}
			if !p.Connected {
				m.Trouble = p.Trouble
			}
			st.Members = append(st.Members, m)
		}
	}
	return st
}
