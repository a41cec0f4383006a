package invitation

import "slices"

// onBeat sends heartbeats, or counts one that was missed. Silence is counted so, and not in
// time: a process that was paused has missed one, and not the others.
func (t *turn) onBeat() {
	t.beat = t.now + t.cfg.Timing.Heartbeat
	switch {
	case t.round.phase == joining:
		t.tellToJoin()
	case t.leads():
		t.sendHeartbeats()
	default:
		if t.missed++; t.missed >= t.cfg.Timing.Misses {
			t.anew()
		}
	}
}

func (t *turn) sendHeartbeats() {
	for i := range t.voices {
		switch v := &t.voices[i]; {
		case v.lost:
		case v.missed >= t.cfg.Timing.Misses:
			t.lose(v)
		case v.confirmed:
			v.missed++
			t.send(v.id, Heartbeat{Number: t.group.Number})
		default:
			v.missed++
			t.send(v.id, Heartbeat{t.group.Number, t.group.Members})
		}
	}
}

// lose notes that a member is lost. The group is formed anew without it, or with it if it has
// come back.
func (t *turn) lose(v *voice) {
	if !v.lost {
		v.lost, t.next = true, t.now
	}
}

// drop waits for a process no longer.
func (r *round) drop(id ID) {
	r.asked = slices.DeleteFunc(r.asked, func(a asked) bool { return a.id == id })
}
