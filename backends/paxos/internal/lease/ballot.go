package lease

import "fmt"

// A MemberID names a member: the address at which the others reach it.
type MemberID string

// A Ballot names one attempt to change one safe. Ballots are ordered by their
// counters; an acceptor promises each counter to one proposer at most, so that no
// two ballots with the same counter can both be decided on.
type Ballot struct {
	// Counter is larger than that of every ballot its proposer knows of. Zero in
	// the ballot of a safe that nobody has changed yet.
	Counter uint64
	// Proposer is the member that made the ballot.
	Proposer MemberID
	// Incarnation is drawn at random by each start of the proposer: a member that
	// has restarted is another one.
	Incarnation uint64
}

func (b Ballot) String() string {
	return fmt.Sprintf("%d by %s/%x", b.Counter, b.Proposer, b.Incarnation)
}
