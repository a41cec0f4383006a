package invitation

import (
	"slices"
	"time"
)

// mayLook reports whether it may begin a round: it leads, does nothing else, and knows of each
// member that it has entered the group or is lost. A round without anybody to look for, or to
// drop, is none.
func (n *Node) mayLook() bool {
	if !n.leads() || n.round.phase != idle {
		return false
	}
	for _, v := range n.voices {
		if !v.confirmed && !v.lost {
			return false
		}
	}
	return n.lost() || len(n.outside()) > 0
}

// outside returns the processes that are not in its group, or lost.
func (n *Node) outside() []ID {
	in := n.alive()
	return slices.DeleteFunc(slices.Clone(n.peers), func(id ID) bool { return slices.Contains(in, id) })
}

// look asks all processes outside the group which one they are in.
func (t *turn) look() {
	t.round = round{phase: looking, began: t.now, until: t.now + t.cfg.Timing.Round}
	for _, id := range t.outside() {
		t.round.asked = append(t.round.asked, asked{id: id})
		t.probe(id)
	}
	t.restUntil(t.now + 2*t.cfg.Timing.Round)
}

func (t *turn) probe(id ID) { t.send(id, Probe{t.group.Number, len(t.group.Members)}) }

func (t *turn) restUntil(at time.Duration) { t.rests = max(t.rests, at) }

// halfway is when a look probes again.
func (n *Node) halfway() time.Duration { return n.round.began + n.cfg.Timing.Round/2 }

// probeAgain asks those once more that others have named as their leader.
func (t *turn) probeAgain() {
	t.round.again = true
	for _, a := range t.round.asked {
		named := func(b asked) bool { return b.names == a.id }
		if !a.answered && slices.ContainsFunc(t.round.asked, named) {
			t.probe(a.id)
		}
	}
}

// probed answers the leader of another group.
func (t *turn) probed(from ID, m Probe) {
	answer := Answer{Probe: m.Number, Number: t.group.Number}
	switch {
	case !t.bound.IsZero():
		answer.Number = t.bound
	case t.leads():
		answer.Members = t.group.Members
	}
	t.send(from, answer)
	if !t.leads() {
		return
	}
	if v := t.voice(from); v != nil && v.confirmed && !v.lost {
		t.send(from, Heartbeat{Number: t.group.Number}) // it is gone, if the probe is not old
	}
	if better(t.cfg.Self, len(t.group.Members), from, m.Size) && t.mayTry(from) {
		t.next = min(t.next, max(t.now, t.rests))
	}
}

// answered takes in the answer to a probe.
func (t *turn) answered(from ID, m Answer) {
	if m.Number.By == t.cfg.Self && !t.inGroup(m.Number) && !t.awaits(m.Number) {
		t.send(from, Gone{m.Number}) // it is in a group of a former start
	}
	a := t.round.of(from)
	if t.round.phase != looking || !t.inGroup(m.Probe) || a == nil || a.answered {
		return
	}
	a.answered, a.names = true, m.Number.By
	if len(m.Members) > 0 {
		t.round.found = append(t.round.found, Group{m.Number, m.Members})
	}
}

// choose ends a look: it defers to a better leader, or invites the groups of the others, or
// drops who is lost.
func (t *turn) choose() {
	found := slices.DeleteFunc(t.round.found, func(g Group) bool { return !t.mayTry(g.Leader()) })
	best := Group{t.group.Number, t.group.Members}
	for _, g := range found {
		if better(g.Leader(), len(g.Members), best.Leader(), len(best.Members)) {
			best = g
		}
	}
	if best.Leader() != t.cfg.Self && !t.lost() {
		t.tried(best.Leader())
		t.rest()
		return
	}
	slices.SortFunc(found, func(a, b Group) int {
		if better(a.Leader(), len(a.Members), b.Leader(), len(b.Members)) {
			return -1
		}
		return 1
	})
	t.invite(found)
}

// rest ends a round in which nobody's work was stopped.
func (t *turn) rest() {
	t.round = round{}
	t.next = t.now + t.cfg.Timing.Look + t.draw(t.cfg.Timing.Look/2)
}

// mayTry reports whether the last attempt to merge with a leader was long enough ago.
func (t *turn) mayTry(peer ID) bool {
	for _, y := range t.tries {
		if y.peer == peer {
			return t.now >= y.last+t.cfg.Timing.wait(y.tries)
		}
	}
	return true
}

// tried notes an attempt to merge with a leader.
func (t *turn) tried(peer ID) {
	t.tries = slices.DeleteFunc(t.tries, func(y try) bool { return t.now >= y.last+t.cfg.Timing.forget() })
	for i := range t.tries {
		if y := &t.tries[i]; y.peer == peer {
			y.tries, y.last = min(y.tries+1, mostDoublings+1), t.now
			return
		}
	}
	t.tries = append(t.tries, try{peer, 1, t.now})
}

// draw returns a span up to d, which differs from process to process and from time to time.
func (t *turn) draw(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	t.seed += 0x9e3779b97f4a7c15
	z := t.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return time.Duration((z ^ z>>31) % uint64(d+1))
}
