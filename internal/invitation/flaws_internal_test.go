package invitation

import "slices"

// flaws are rules that a world leaves out, by changing messages on their way, or what a process
// believes before it takes them in. The core knows no flaws.
type flaws struct {
	sameIncarnation bool // a start draws the same number again
	earlyReady      bool // a process is ready although its work goes on
	ownLists        bool // each member is told another list
	oldFormed       bool // a group is entered by whoever is told of it
	twoPromises     bool // a process that waits for one group joins a second one as well
	noTicket        bool // Join is obeyed whatever group it is to leave
	lateReady       bool // the list grows when somebody is ready too late
}

// distort has a process believe what one of a protocol with flaws does.
func (w *world) distort(i int, e Event) Event {
	a := &w.actors[i]
	n := &a.node
	switch m := e.Message.(type) {
	case Heartbeat:
		told := !n.awaits(m.Number) && !n.inGroup(m.Number) && slices.Contains(m.Members, a.id)
		second := slices.Contains(a.promised, m.Number)
		if told && (w.flaws.oldFormed || w.flaws.twoPromises && second) {
			w.force(i, m.Number)
		}
	case Join:
		switch {
		case w.flaws.earlyReady && n.inGroup(m.Old):
			n.work = Number{}
		case w.flaws.noTicket && !n.awaits(m.Number) && !n.inGroup(m.Number) && !n.group.Number.IsZero():
			m.Old = n.group.Number
			e.Message = m
		case w.flaws.twoPromises && !n.bound.IsZero() && n.bound.By != a.id && n.bound != m.Number:
			a.promised = append(slices.Clip(a.promised), m.Number)
			w.send(flight{i, w.index(e.From), Ready{m.Number}})
			return Event{Kind: Tick}
		}
	case Ready:
		if w.flaws.lateReady && n.leads() && n.inGroup(m.Number) && !n.group.Has(e.From) {
			n.group.Members = sorted(append(slices.Clone(n.group.Members), e.From))
		}
	}
	return e
}

// force has a process wait for a group, wherever it is.
func (w *world) force(i int, number Number) {
	n := &w.actors[i].node
	*n = clone(*n)
	n.bound, n.group, n.entered, n.voices, n.round = number, Group{}, false, nil, round{}
	n.work = Number{}
}

// tamper changes a message on its way.
func (w *world) tamper(i, to int, m Message) Message {
	h, ok := m.(Heartbeat)
	if !ok || !w.flaws.ownLists || len(h.Members) < 3 {
		return m
	}
	others := func(id ID) bool { return id != w.actors[i].id && id != w.actors[to].id }
	h.Members = slices.DeleteFunc(slices.Clone(h.Members), others)
	return h
}
