package lease

import "time"

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
	cells       map[string]cell
}

// A cell is what an acceptor knows of one safe.
type cell struct {
	promised Ballot
	since    time.Duration // when promised was promised first
	accepted Ballot
	state    State
	expires  time.Duration
	touched  time.Duration
}

// NewAcceptor returns an acceptor that starts now and answers from opens on.
// Incarnation is new for each start, at random. Floor is the highest counter that
// the member has promised before, as far as it knows: see [Acceptor.Promised].
func NewAcceptor(terms Terms, incarnation uint64, opens time.Duration, floor uint64) *Acceptor {
	return &Acceptor{terms: terms, incarnation: incarnation, opens: opens, floor: floor, cells: map[string]cell{}}
}

// Receive takes a message of a member and returns what to answer, or nil: to
// messages that are not for acceptors, and to all of them before it opens.
func (a *Acceptor) Receive(now time.Duration, m Message) Message {
	if now < a.opens {
		return nil
	}
	switch m := m.(type) {
	case Query:
		return Answer{Safe: m.Safe, Asker: m.Asker, Report: a.at(m.Safe).report(now)}
	case Prepare:
		return a.prepare(now, m)
	case Propose:
		return a.propose(now, m)
	}
	return nil
}

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
			return Refusal{Safe: m.Safe, Ballot: m.Ballot, Promised: c.promised.Counter}
		}
		c.promised, c.since = m.Ballot, now
	}
	c.touched = now
	a.cells[m.Safe] = c
	return Promise{Safe: m.Safe, Ballot: m.Ballot, Acceptor: a.incarnation, Report: c.report(now)}
}

func (a *Acceptor) propose(now time.Duration, m Propose) Message {
	c := a.at(m.Safe)
	refusal := Refusal{Safe: m.Safe, Ballot: m.Ballot, Promised: c.promised.Counter}
	switch {
	case m.Acceptor != a.incarnation || m.Ballot != c.promised:
		// Promised by an earlier incarnation, which knew what this one has forgotten,
		// or overtaken.
		return refusal
	case c.accepted == m.Ballot:
		return Accept{Safe: m.Safe, Ballot: m.Ballot}
	case !m.State.Vacant() && (now >= c.since+m.Life || m.Life > a.longest()):
		return refusal
	case !c.gives(now, m.Replaces):
		refusal.Held, refusal.Life = true, c.expires-now
		return refusal
	}
	c.accepted, c.state, c.touched = m.Ballot, m.State, now
	c.expires = c.since + m.Life
	a.cells[m.Safe] = c
	return Accept{Safe: m.Safe, Ballot: m.Ballot}
}

// longest is the longest life that anybody proposes: a rescuer adds what its round
// has taken.
func (a *Acceptor) longest() time.Duration {
	return a.terms.Life(a.terms.MaxTTL) + (MaxRescues+1)*a.terms.Round
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
