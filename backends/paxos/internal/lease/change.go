package lease

import (
	"cmp"
	"slices"
	"time"
)

// A Kind says what an operation does.
type Kind uint8

// The kinds of operations.
const (
	Read     Kind = iota // look, and change nothing
	Create               // a record, if the safe is vacant
	Refresh              // start the record's life anew
	Publish              // another value under the same signature
	HandOver             // another signature
	Delete               // empty the safe
)

// A Change is an operation: what to do, if the safe is as the caller thinks it is.
type Change struct {
	Kind Kind
	// What the safe must hold: refresh and delete look at signature and token,
	// publish and hand over at the revision as well.
	OldSignature string
	OldToken     uint64
	OldRevision  uint64
	// What to put there: a hand-over and a create use all of it, publish looks at
	// value and note alone.
	Signature string
	Value     string
	Note      string
	TTL       time.Duration
}

// A Verdict is how an operation ended.
type Verdict uint8

// The verdicts.
const (
	None    Verdict = iota // not ended yet
	Written                // the change took effect
	Found                  // a read found a record
	Vacant                 // a read found none
	Held                   // a create was refused and had no effect
	Stale                  // another change was refused and had no effect
	Unclear                // the change may or may not have taken effect, now or later
)

// apply returns what the change makes of a safe under a ballot, or why it makes
// nothing of it. A record that is not live is none.
func (c Change) apply(v view, ballot Ballot) (next State, refused Verdict) {
	holds := v.live && v.state.Signature == c.OldSignature && v.state.Tenure.Counter == c.OldToken
	switch c.Kind {
	case Read:
		if v.live {
			return State{}, Found
		}
		return State{}, Vacant
	case Create:
		if v.live {
			return State{}, Held
		}
		return c.sign(ballot), None
	case Refresh, Delete:
		if !holds {
			return State{}, Stale
		}
	case Publish, HandOver:
		if !holds || v.state.Revision != c.OldRevision {
			return State{}, Stale
		}
	}
	next = v.state
	next.Rescues = 0
	switch c.Kind {
	case Publish:
		next.Value, next.Note, next.Revision = c.Value, c.Note, ballot.Counter
	case HandOver:
		next = c.sign(ballot)
	case Delete:
		next = State{}
	}
	return next, None
}

// sign returns a record under a new signature.
func (c Change) sign(ballot Ballot) State {
	return State{Tenure: ballot, Signature: c.Signature, Value: c.Value, Note: c.Note, TTL: c.TTL, Revision: ballot.Counter}
}

// MaxReceipts is how many receipts a state has at most. Members need one each; there
// may be any number of clients.
const MaxReceipts = MaxMembers

// receipted returns next with the receipts of what it replaces and one more, by
// which its operation recognizes its own work.
func receipted(next, replaced State, own Receipt) State {
	kept := slices.DeleteFunc(slices.Clone(replaced.Receipts), func(r Receipt) bool { return r.Member == own.Member })
	kept = append(kept, own)
	if len(kept) > MaxReceipts {
		oldest := slices.MinFunc(kept, func(a, b Receipt) int { return cmp.Compare(a.Counter, b.Counter) })
		kept = slices.DeleteFunc(kept, func(r Receipt) bool { return r == oldest })
	}
	slices.SortFunc(kept, func(a, b Receipt) int { return cmp.Compare(a.Member, b.Member) })
	next.Receipts = kept
	return next
}

// forgot reports whether the state may have lost a receipt of a ballot with that
// counter, for want of room.
func (s State) forgot(counter uint64) bool {
	return len(s.Receipts) >= MaxReceipts &&
		!slices.ContainsFunc(s.Receipts, func(r Receipt) bool { return r.Counter <= counter })
}

// receipt returns the receipt of an operation, if the state has one.
func (s State) receipt(op Receipt) (Receipt, bool) {
	for _, r := range s.Receipts {
		if r.Member == op.Member && r.Incarnation == op.Incarnation && r.Operation == op.Operation {
			return r, true
		}
	}
	return Receipt{}, false
}
