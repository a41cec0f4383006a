package lease

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// A writer writes what a world's future depends on. Times count from now, so that it does not matter
// how late it is; acceptors are put in an order of their own, so that it matters little which is which; and
// what nothing depends on is left out.
type writer struct {
	w     *world
	now   time.Duration
	place []int // of each acceptor
	b     []byte
}

// Text implements [explore.World].
func (w *world) Text() []byte {
	locals := make([][]byte, len(w.acceptors))
	order := make([]int, len(w.acceptors))
	for i, a := range w.acceptors {
		t := writer{w: w, now: w.now}
		t.acceptor(a)
		t.number(uint64(w.restarts[i]))
		for _, b := range w.ever[i] {
			if w.retractable(b) {
				t.ballot(b)
			}
		}
		locals[i], order[i] = t.b, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(locals[a], locals[b]) })
	t := writer{w: w, now: w.now, place: make([]int, len(order)), b: make([]byte, 0, 2048)}
	for place, i := range order {
		t.place[i] = place
		t.b = append(append(t.b, locals[i]...), 0xfe)
	}
	for _, c := range w.candidates {
		t.candidate(c, order)
	}
	t.pool(w)
	for _, b := range w.retracted {
		t.ballot(b)
	}
	t.number(uint64(w.faults))
	if w.durable {
		t.number(w.token)
	}
	return t.b
}

// retractable reports whether a ballot was retracted, or may be.
func (w *world) retractable(b Ballot) bool {
	for _, c := range w.candidates {
		if c.op != nil && c.op.phase < resting && c.op.ballot == b {
			return true
		}
	}
	return slices.Contains(w.retracted, b) || slices.ContainsFunc(w.pool, func(f flight) bool {
		m, ok := f.m.(Retract)
		return ok && m.Ballot == b
	})
}

func (t *writer) number(n uint64) { t.b = binary.AppendUvarint(t.b, n) }
func (t *writer) flag(set bool) {
	if set {
		t.number(1)
	} else {
		t.number(0)
	}
}

// ahead writes an instant that means nothing once it has passed.
func (t *writer) ahead(at time.Duration) { t.number(uint64(max(0, at-t.now))) }

// past writes how long ago something was; very long is as long as anything.
func (t *writer) past(at time.Duration) { t.number(uint64(min(t.now-at, 100))) }

func (t *writer) id(m MemberID) {
	if m == "" {
		t.b = append(t.b, 0)
		return
	}
	t.b = append(t.b, m[0])
}

func (t *writer) ballot(b Ballot) {
	t.number(b.Counter)
	t.id(b.Proposer)
	t.number(b.Incarnation)
}

// state leaves out what no operation of the exploration looks at: revisions, and
// receipts of operations that are over.
func (t *writer) state(s State) {
	t.ballot(s.Tenure)
	t.number(uint64(s.Rescues))
	for i, c := range t.w.candidates {
		if c.op == nil {
			continue
		}
		if r, ok := s.receipt(c.op.receipt()); ok {
			t.number(uint64(i + 1))
			t.number(r.Counter)
		}
	}
	t.number(0)
}

func (t *writer) acceptor(a *Acceptor) {
	t.number(a.incarnation)
	t.ahead(a.opens)
	t.number(a.floor)
	t.number(a.limit.top)
	t.ahead(a.limit.next)
	c := a.at("s")
	t.ballot(c.promised)
	if t.w.awaits(c.promised) {
		t.past(c.since)
	}
	t.flag(c.spent)
	t.held(c.held)
	// What lies below matters if what lies above can be retracted.
	top := c.accepted
	for i := len(c.earlier); i > 0 && t.w.retractable(top); i-- {
		top = c.earlier[i-1].accepted
		t.held(c.earlier[i-1])
	}
}

func (t *writer) held(h held) {
	t.ballot(h.accepted)
	t.state(h.state)
	t.ahead(h.expires)
}

func (t *writer) report(r Report) {
	t.ballot(r.Accepted)
	t.state(r.State)
	t.flag(r.Expired)
	t.number(uint64(r.Life))
}

func (t *writer) candidate(c candidate, order []int) {
	t.number(c.p.Incarnation)
	t.number(c.counter)
	t.ahead(c.until)
	if t.w.owns(c) {
		t.ballot(c.mine.Tenure)
	}
	t.number(uint64(c.ops))
	t.number(uint64(c.crashes))
	if c.op == nil {
		t.b = append(t.b, 0xff)
		return
	}
	o := c.op
	t.number(uint64(c.kind))
	t.past(c.began)
	t.number(o.change.OldToken)
	t.number(uint64(o.phase))
	t.number(uint64(o.next))
	t.ballot(o.ballot)
	t.past(o.sent)
	t.ahead(o.again)
	t.flag(o.listened)
	t.flag(o.hurried)
	for _, i := range order {
		v := o.voices[i]
		t.flag(v.promised)
		t.flag(v.accepted)
		t.flag(v.refused)
		t.flag(v.void)
		t.number(v.acceptor)
		t.report(v.report)
	}
	t.number(uint64(o.verdict))
	t.state(o.done)
	t.ballot(o.proposed.Replaces.Ballot)
	t.state(o.proposed.State)
	t.number(uint64(o.proposed.Life))
	t.number(uint64(len(o.mine)))
	for _, m := range o.mine {
		t.ballot(m.ballot)
		t.state(m.state)
	}
	t.past(o.first)
}

func (t *writer) pool(w *world) {
	texts := make([][]byte, len(w.pool))
	for i, f := range w.pool {
		m := writer{w: w, now: w.now, place: t.place}
		for _, end := range []int{f.from, f.to} {
			if end < len(t.place) {
				end = t.place[end]
			}
			m.number(uint64(end))
		}
		m.message(f.m)
		texts[i] = m.b
	}
	slices.SortFunc(texts, bytes.Compare)
	for _, text := range texts {
		t.number(uint64(len(text)))
		t.b = append(t.b, text...)
	}
}

func (t *writer) message(m Message) {
	t.ballot(ballotOf(m))
	switch m := m.(type) {
	case Prepare:
		t.number(1)
	case Promise:
		t.number(2)
		t.number(m.Acceptor)
		t.report(m.Report)
	case Propose:
		t.number(3)
		t.number(m.Acceptor)
		t.ballot(m.Replaces.Tenure)
		t.ballot(m.Replaces.Ballot)
		t.state(m.State)
		t.number(uint64(m.Life))
	case Accept:
		t.number(4)
	case Refusal:
		t.number(5)
		t.number(m.Promised)
		t.flag(m.Held)
		t.number(uint64(m.Life))
		t.flag(m.Void)
	case Retract:
		t.number(6)
	}
}
