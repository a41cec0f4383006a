package lease

import (
	"slices"
	"time"
)

// An Acceptor is the part of a member that grants leases: it promises ballots,
// accepts states and reports them. It keeps nothing on disk; that is safe because
// one that has started says nothing for [Terms.Quarantine].
//
// Its times are readings of a clock that may run slow but must not run fast: what
// it has accepted must outlast the trust of whoever it was granted to.
type Acceptor struct {
	terms       Terms
	incarnation uint64
	opens       time.Duration // when it begins to answer
	floor       uint64        // promised for every safe that is not in cells
	limit       Limit
	cells       map[string]cell
}

// A cell is what an acceptor knows of one safe.
type cell struct {
	promised Ballot
	since    time.Duration // when promised was promised first
	spent    bool          // nothing more is accepted under promised
	held
	earlier []held // what it held before, the oldest first; not changed in place
	touched time.Duration
}

// held is a state that an acceptor has accepted, or the nothing before the first.
type held struct {
	accepted Ballot
	state    State
	expires  time.Duration
}

// maxEarlier is how many states an acceptor keeps that others took the place of. One
// that is not there cannot be gone back to; what took its place stays.
const maxEarlier = 3

// NewAcceptor returns an acceptor that starts now and answers from opens on.
// Incarnation is new for each start, at random. Floor is the highest counter that
// the member has promised before, as far as it knows: see [Promised].
func NewAcceptor(terms Terms, incarnation uint64, opens time.Duration, floor uint64) *Acceptor {
	return &Acceptor{terms: terms, incarnation: incarnation, opens: opens, floor: floor, limit: NewLimit(floor), cells: map[string]cell{}}
}

// Receive takes a message of a member and returns what to answer, or nil: to
// messages that are not for acceptors, and to all of them before it opens.
func (a *Acceptor) Receive(now time.Duration, m Message) Message {
	if now < a.opens {
		return nil
	}
	switch m := m.(type) {
	case Query:
		c := a.at(m.Safe)
		return Answer{Safe: m.Safe, Asker: m.Asker, Report: c.report(now), Promised: c.promised.Counter}
	case Prepare:
		return a.prepare(now, m)
	case Propose:
		return a.propose(now, m)
	case Retract:
		a.retract(m)
	}
	return nil
}

// Learn tells the acceptor of a counter that a majority has passed. It goes along with
// those that follow.
func (a *Acceptor) Learn(counter uint64) { a.limit.Learn(counter) }

// Promised returns the counter that the answer to a prepare relies on: if the
// member keeps promises on disk, none below it may be given after a restart. It is
// zero if the answer promises nothing.
func Promised(answer Message) uint64 {
	if p, ok := answer.(Promise); ok {
		return p.Ballot.Counter
	}
	return 0
}

func (a *Acceptor) at(safe string) cell {
	c, ok := a.cells[safe]
	if !ok {
		c.promised.Counter = a.floor
	}
	return c
}

func (a *Acceptor) prepare(now time.Duration, m Prepare) Message {
	c := a.at(m.Safe)
	if m.Ballot != c.promised {
		if m.Ballot.Counter <= c.promised.Counter {
			return c.refuse(m.Safe, m.Ballot)
		}
		if !a.limit.Admits(now, m.Ballot.Counter) {
			// It may be promised when it comes again, so that the refusal is no proof.
			return Refusal{Safe: m.Safe, Ballot: m.Ballot, Promised: c.promised.Counter}
		}
		c.promised, c.since, c.spent = m.Ballot, now, false
	}
	c.touched = now
	a.cells[m.Safe] = c
	return Promise{Safe: m.Safe, Ballot: m.Ballot, Acceptor: a.incarnation, Report: c.report(now)}
}

func (a *Acceptor) propose(now time.Duration, m Propose) Message {
	c := a.at(m.Safe)
	switch {
	case m.Acceptor != a.incarnation:
		// Promised by an earlier incarnation, which knew what this one has forgotten,
		// and may have accepted this.
		return Refusal{Safe: m.Safe, Ballot: m.Ballot, Promised: c.promised.Counter}
	case m.Ballot != c.promised || c.spent: // overtaken, or refused before
		return c.refuse(m.Safe, m.Ballot)
	case c.accepted == m.Ballot:
		return Accept{Safe: m.Safe, Ballot: m.Ballot}
	case !m.State.Vacant() && now >= c.since+m.Life || !m.sound(a.terms):
		return c.refuse(m.Safe, m.Ballot)
	}
	if !c.gives(now, m.Replaces) {
		c.spent = true // for good, even if the lease in the way goes: the proposer may rely on it
		a.cells[m.Safe] = c
		refusal := c.refuse(m.Safe, m.Ballot)
		refusal.Held, refusal.Life = true, c.expires-now
		return refusal
	}
	c.earlier = append(slices.Clone(c.earlier), c.held)
	c.earlier = c.earlier[max(0, len(c.earlier)-maxEarlier):]
	c.held, c.touched = held{m.Ballot, m.State, c.since + m.Life}, now
	a.cells[m.Safe] = c
	return Accept{Safe: m.Safe, Ballot: m.Ballot}
}

// refuse refuses a ballot that the cell has promised and is done with, or that is
// below what it has promised.
func (c cell) refuse(safe string, b Ballot) Refusal {
	return Refusal{Safe: safe, Ballot: b, Promised: c.promised.Counter, Void: c.lacks(b)}
}

// lacks reports whether the cell certainly does not hold, nor has anywhere below, what
// was proposed under a ballot. Ballots are accepted in their order, so that what it has
// dropped for want of room is older than all that is there.
func (c cell) lacks(b Ballot) bool {
	all := append(slices.Clone(c.earlier), c.held)
	return b.Counter > all[0].accepted.Counter &&
		!slices.ContainsFunc(all, func(h held) bool { return h.accepted == b })
}

// retract has the acceptor be as if it had never accepted what was proposed under a
// ballot: it goes back to exactly what it held before. Nothing else changes; it keeps
// what it has promised.
func (a *Acceptor) retract(m Retract) {
	c, ok := a.cells[m.Safe]
	if !ok {
		return
	}
	if c.promised == m.Ballot {
		c.spent = true // the proposal may be still on its way
	}
	last := len(c.earlier) - 1
	if c.accepted == m.Ballot && last >= 0 {
		c.held, c.earlier = c.earlier[last], c.earlier[:last]
	} else {
		c.earlier = slices.DeleteFunc(slices.Clone(c.earlier), func(e held) bool { return e.accepted == m.Ballot })
	}
	a.cells[m.Safe] = c
}

// live reports whether the cell holds a record whose life is not over.
func (c cell) live(now time.Duration) bool { return !c.state.Vacant() && now < c.expires }

// gives reports whether the cell's lease may make room for one that replaces
// another: if it is over, or if it is that one, or an older state of it that this
// acceptor has not seen refreshed. A live lease of anybody else is left alone, even
// under a higher ballot (rule 2); anybody else is also the same member in another
// incarnation (rule 3), and the same owner's later lease (rule 6).
func (c cell) gives(now time.Duration, replaced Lease) bool {
	return !c.live(now) ||
		c.state.Tenure == replaced.Tenure && c.accepted.Counter <= replaced.Ballot.Counter
}

func (c cell) report(now time.Duration) Report {
	r := Report{Accepted: c.accepted, State: c.state}
	if !c.state.Vacant() {
		r.Expired = !c.live(now)
		if !r.Expired {
			r.Life = c.expires - now
		}
	}
	return r
}

// Forget drops what the acceptor knows of safes in which nothing has lived or been
// promised for a quarantine: a restart would forget it as well. It returns how many
// it still knows.
func (a *Acceptor) Forget(now time.Duration) int {
	for safe, c := range a.cells {
		if !c.live(now) && now-max(c.touched, c.expires) >= a.terms.Quarantine() {
			a.floor = max(a.floor, c.promised.Counter)
			delete(a.cells, safe)
		}
	}
	return len(a.cells)
}
