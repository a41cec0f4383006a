package invitation

// enter begins the work for a group.
func (t *turn) enter(g Group) {
	t.group, t.entered, t.bound, t.work = g, true, Number{}, g.Number
	t.out = append(t.out, Effect{Kind: Enter, Group: g})
}

// leave calls the work off, and is in no group then.
func (t *turn) leave() {
	if t.entered {
		t.out = append(t.out, Effect{Kind: Leave, Group: t.group})
	}
	t.group, t.entered, t.voices, t.round = Group{}, false, nil, round{}
	t.held, t.holder = 0, Number{}
}

// alone forms a group of one.
func (t *turn) alone() {
	t.group, t.bound = Group{t.number(), []ID{t.cfg.Self}}, Number{}
	t.begin = t.now + t.cfg.Timing.patience()
	t.next, t.rests = t.now+t.draw(t.cfg.Timing.Round/2), t.now
}

// anew leaves whatever it is in or waits for. Its own group of one it forms when
// no work goes on.
func (t *turn) anew() {
	t.leave()
	t.bound = Number{}
	if t.work.IsZero() {
		t.alone()
	}
}

// joins leaves the group that is meant for another one. That cannot happen twice: a group that
// was left is never entered again.
func (t *turn) joins(from ID, m Join) {
	switch {
	case t.inGroup(m.Old):
		t.leave()
		t.bound, t.beat = m.Number, t.now+t.cfg.Timing.Heartbeat
	case t.awaits(m.Number):
	case t.inGroup(m.Number): // it is there already
		return
	default:
		t.send(from, Gone{m.Number})
		return
	}
	t.listen()
	if t.work.IsZero() {
		t.send(from, Ready{m.Number})
	}
}

// listen waits anew for a sign of the leader. One that comes half a heartbeat late is not missed.
func (t *turn) listen() {
	t.missed, t.beat = 0, t.now+t.cfg.Timing.Heartbeat+t.cfg.Timing.Heartbeat/2
}

// stopped takes in that its work has returned.
func (t *turn) stopped() {
	switch {
	case t.bound.IsZero() && t.group.Number.IsZero():
		t.alone()
	case t.bound.IsZero(), t.bound.By == t.cfg.Self:
	default:
		t.send(t.bound.By, Ready{t.bound})
	}
}

// heard takes in what the leader of its group says, or of the group that it waits for.
func (t *turn) heard(from ID, m Heartbeat) {
	member := Group(m).Has(t.cfg.Self)
	switch {
	case t.inGroup(m.Number):
		t.listen()
		t.send(from, Alive{m.Number})
	case t.awaits(m.Number) && len(m.Members) == 0:
	case t.awaits(m.Number) && !member:
		t.anew()
	case t.awaits(m.Number) && t.work.IsZero():
		t.listen()
		t.enter(Group(m))
		t.send(from, Alive{m.Number})
	case t.awaits(m.Number):
	case member || len(m.Members) == 0:
		t.send(from, Gone{m.Number})
	}
}

// gone takes in that a process is not in a group, and never will be.
func (t *turn) gone(from ID, m Gone) {
	switch v := t.voice(from); {
	case t.inGroup(m.Number) && v != nil:
		t.lose(v)
	case t.inGroup(m.Number) && from == t.group.Leader():
		t.anew()
	case !t.awaits(m.Number):
	case from == t.bound.By:
		t.anew()
	case t.round.phase == joining:
		t.round.drop(from)
	}
}
