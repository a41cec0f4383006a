package lease

import (
	"slices"
	"time"
)

// A Message is what members tell each other about one safe: [Query], [Answer],
// [Prepare], [Promise], [Propose], [Accept], [Refusal], [Retract] or [Commit]. Times in
// them are spans, never instants. Messages are values: once sent they are not changed.
//
// Each of them may be lost, delayed, repeated and overtaken.
type Message interface {
	// Name returns the name of the safe that the message is about.
	Name() string
}

// A Query asks an acceptor what it knows, and binds it to nothing.
type Query struct {
	Safe string
	// Asker says whose query it is, and which: its counter is drawn by the asker
	// and means nothing to the acceptor.
	Asker Ballot
}

// An Answer answers a [Query].
type Answer struct {
	Safe   string
	Asker  Ballot // of the query
	Report Report
	// Promised is the counter of the highest ballot that the acceptor has promised:
	// one that is to follow had better be larger.
	Promised uint64
}

// A Prepare asks an acceptor to accept nothing below Ballot from now on.
type Prepare struct {
	Safe   string
	Ballot Ballot
}

// A Promise says that the acceptor will accept nothing below Ballot, and what it
// has accepted so far.
type Promise struct {
	Safe   string
	Ballot Ballot // of the prepare
	// Acceptor is the acceptor's incarnation: one that has restarted knows of no
	// promise.
	Acceptor uint64
	Report   Report
}

// A Propose asks an acceptor that has promised Ballot to accept State.
type Propose struct {
	Safe     string
	Ballot   Ballot
	Acceptor uint64 // of the promise
	// Replaces is the lease whose place State takes. A live lease of anybody else
	// is left alone.
	Replaces Lease
	State    State
	// Life is how long the state lives, counted from the acceptor's promise. Zero
	// if the state is vacant.
	Life time.Duration
}

// An Accept says that the acceptor has accepted what was proposed under Ballot.
type Accept struct {
	Safe   string
	Ballot Ballot
}

// A Refusal says that the acceptor has not done what a prepare or propose under
// Ballot asked.
type Refusal struct {
	Safe   string
	Ballot Ballot
	// Promised is the counter of the highest ballot that the acceptor has promised.
	Promised uint64
	// Held is set if a live lease of somebody else is in the way, and Life how long
	// it lives on.
	Held bool
	Life time.Duration
	// Void is set if the acceptor does not hold what was proposed under Ballot, and
	// never will.
	Void bool
}

// A Retract tells an acceptor that no majority can ever accept what was proposed under
// Ballot, so that it need not hold that.
type Retract struct {
	Safe   string
	Ballot Ballot
}

// A Commit tells a member that a majority has accepted State under Ballot. It is
// news for those who wait; nobody's right depends on it.
type Commit struct {
	Safe   string
	Ballot Ballot
	State  State
	Life   time.Duration // from the receipt on, at most
}

// A Report is what an acceptor knows of a safe.
type Report struct {
	// Accepted is the ballot of the last state that it has accepted, zero if none.
	Accepted Ballot
	State    State
	// Expired is set if the state's life was over; Life is what was left of it
	// otherwise. A vacant state has neither.
	Expired bool
	Life    time.Duration
}

// A Lease names one state of a safe exactly: whose record it is and which write of
// it. It is zero where a safe is vacant.
type Lease struct {
	// Tenure is the ballot under which the record's signature came into the safe.
	Tenure Ballot
	// Ballot is the ballot of this state: of the last refresh, say.
	Ballot Ballot
}

// A State is what a safe holds after a change: a record, or nothing.
type State struct {
	// Tenure is the ballot under which the record's signature came into the safe:
	// it is the owner's identity, its incarnation included, and its counter is the
	// record's token. Zero if the safe is vacant.
	Tenure Ballot

	// The record.
	Signature string
	Value     string
	Note      string
	TTL       time.Duration
	// Revision is the counter of the ballot that changed the record last; a
	// refresh changes nothing.
	Revision uint64

	// Rescues counts how often others have completed this state since it was
	// written, with the life that was left of it.
	Rescues uint8

	// Receipts name the last operation of each member that took effect in this
	// safe, in the order of the members.
	Receipts []Receipt
}

// A Receipt says that an operation took effect, and under which ballot.
type Receipt struct {
	Member      MemberID
	Incarnation uint64
	Operation   uint64 // numbered by the member's incarnation
	Counter     uint64 // of the ballot under which it was proposed
}

// Vacant reports whether the state is that of an empty safe.
func (s State) Vacant() bool { return s.Tenure == Ballot{} }

// sound reports whether a proposal may be made under its ballot at all: what is in a
// state was brought there by this ballot or one before.
func (m Propose) sound(t Terms) bool {
	s, newest := m.State, m.Ballot.Counter
	return m.Life <= t.Longest() && s.TTL <= t.MaxTTL && s.Tenure.Counter <= newest && s.Revision <= newest &&
		!slices.ContainsFunc(s.Receipts, func(r Receipt) bool { return r.Counter > newest })
}

// Forged reports whether a message speaks for another's ballot than that of whom it comes
// from. Answers name the ballot of whom they answer.
func Forged(from MemberID, m Message) bool {
	var author MemberID
	switch m := m.(type) {
	case Query:
		author = m.Asker.Proposer
	case Prepare:
		author = m.Ballot.Proposer
	case Propose:
		author = m.Ballot.Proposer
	case Retract:
		author = m.Ballot.Proposer
	case Commit:
		author = m.Ballot.Proposer
	default:
		return false
	}
	return author != from
}

// Name implements [Message].
func (m Query) Name() string { return m.Safe }

// Name implements [Message].
func (m Answer) Name() string { return m.Safe }

// Name implements [Message].
func (m Prepare) Name() string { return m.Safe }

// Name implements [Message].
func (m Promise) Name() string { return m.Safe }

// Name implements [Message].
func (m Propose) Name() string { return m.Safe }

// Name implements [Message].
func (m Accept) Name() string { return m.Safe }

// Name implements [Message].
func (m Refusal) Name() string { return m.Safe }

// Name implements [Message].
func (m Retract) Name() string { return m.Safe }

// Name implements [Message].
func (m Commit) Name() string { return m.Safe }
