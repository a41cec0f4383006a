package invitation

import (
	"slices"
)

// number makes a number that was never used.
func (t *turn) number() Number {
	t.counter++
	return Number{t.cfg.Self, t.incarnation, t.counter}
}

// invite asks all members of groups whether they would join. Groups that it leads to see
// twice, or that have a member of its own, are left alone: somebody has moved meanwhile.
func (t *turn) invite(found []Group) {
	in := append(t.alive(), t.cfg.Self)
	r := round{phase: inviting, number: t.number(), began: t.now, until: t.now + t.cfg.Timing.Round}
	for _, g := range found {
		taken := func(id ID) bool { return slices.Contains(in, id) }
		if !better(t.cfg.Self, len(t.group.Members), g.Leader(), len(g.Members)) ||
			len(in)+len(g.Members) > MaxMembers || slices.ContainsFunc(g.Members, taken) {
			continue
		}
		in = append(in, g.Members...)
		t.tried(g.Leader())
		r.found = append(r.found, g)
		for _, id := range g.Members {
			r.asked = append(r.asked, asked{id: id, old: g.Number})
			t.send(id, Invite{Number: r.number, Old: g.Number, Size: len(t.group.Members)})
		}
	}
	t.round = r // if there is nobody to invite, it is complete
}

// invited accepts an invitation if it is in the group that is meant. The leader of that
// group accepts for it: one invitation at a time, and of a better leader.
func (t *turn) invited(from ID, m Invite) {
	if !t.inGroup(m.Old) {
		return
	}
	if t.leads() {
		other := t.now < t.held && t.holder != m.Number
		if other || t.lost() || !better(from, m.Size, t.cfg.Self, len(t.group.Members)) {
			return
		}
		if t.holder != m.Number {
			t.held, t.holder = t.now+t.cfg.Timing.hold(), m.Number
		}
		if t.round.phase != idle {
			t.rest()
		}
	}
	t.send(from, Accept{m.Number, m.Old})
}

// accepted takes in that an invitation has made its way there and back.
func (t *turn) accepted(from ID, m Accept) {
	a := t.round.of(from)
	if t.round.phase == inviting && t.round.number == m.Number && a != nil && a.old == m.Old {
		a.answered = true
	}
}

// gather ends an invitation: it tells all members of its own group, and of those of which all
// have accepted, to leave their groups. Its own it leaves itself.
func (t *turn) gather() {
	all := []asked{}
	for _, id := range t.alive() {
		all = append(all, asked{id: id, old: t.group.Number})
	}
	merge := t.lost()
	for _, g := range t.round.found {
		silent := func(id ID) bool { a := t.round.of(id); return !a.answered }
		if slices.ContainsFunc(g.Members, silent) {
			continue
		}
		merge = true
		for _, id := range g.Members {
			all = append(all, asked{id: id, old: g.Number})
		}
	}
	if !merge {
		t.rest()
		return
	}
	number := t.round.number
	t.leave()
	t.bound = number
	t.round = round{phase: joining, number: number, began: t.now, until: t.now + t.cfg.Timing.Drain, asked: all}
	t.tellToJoin()
}

// tellToJoin tells all that are asked. Those that are ready learn that their leader is alive.
func (t *turn) tellToJoin() {
	t.beat = t.now + t.cfg.Timing.Heartbeat
	for _, a := range t.round.asked {
		t.send(a.id, Join{t.bound, a.old})
	}
}

// ready takes in that a process waits for the group, and does no work.
func (t *turn) ready(from ID, m Ready) {
	switch a := t.round.of(from); {
	case t.awaits(m.Number) && t.round.phase == joining:
		if a != nil {
			a.answered = true
		}
	case t.leads() && t.inGroup(m.Number):
		t.send(from, Heartbeat{m.Number, t.group.Members}) // it has missed that, or is too late
	case m.Number.By == t.cfg.Self:
		t.send(from, Gone(m))
	}
}

// form ends a merge: those that are ready are the members, and nobody else ever will be.
func (t *turn) form() {
	g := Group{t.bound, []ID{t.cfg.Self}}
	asked := t.round.asked
	for _, a := range asked {
		if a.answered {
			g.Members = append(g.Members, a.id)
			t.voices = append(t.voices, voice{id: a.id})
		}
	}
	g.Members = sorted(g.Members)
	t.enter(g)
	t.rest()
	t.restUntil(t.now + t.cfg.Timing.Look)
	t.beat = t.now + t.cfg.Timing.Heartbeat
	for _, a := range asked {
		t.send(a.id, Heartbeat(g))
	}
}

// abandon gives a merge up because its own work has not stopped in time. The others need
// not wait for that.
func (t *turn) abandon() {
	for _, a := range t.round.asked {
		t.send(a.id, Gone{t.bound})
	}
	t.anew()
}
