package invitation

import (
	"slices"
	"time"
)

// An Event is what a step takes in.
type Event struct {
	Kind        EventKind
	Incarnation uint64  // of Start: drawn at random
	Peers       []ID    // of Start and Peers
	From        ID      // of Arrived
	Message     Message // of Arrived
	Number      Number  // of Returned
}

// An EventKind is one kind of event.
type EventKind uint8

// The events.
const (
	Tick     EventKind = iota // time has passed
	Start                     // the process begins, the first event and once
	Arrived                   // a message has arrived
	Returned                  // the work for a group has returned, called off or by itself
	Peers                     // other processes are looked for from now on; members stay as long as they answer
	Quit                      // the process leaves for good
)

// An Effect is what is to be done after a step.
type Effect struct {
	Kind    EffectKind
	To      ID      // of Send
	Message Message // of Send
	Group   Group   // of Enter and Leave
}

// An EffectKind is one kind of effect.
type EffectKind uint8

// The effects.
const (
	Send  EffectKind = iota // pass a message on, or lose it
	Enter                   // the process is in a group: begin the work for it
	Leave                   // it is not in it any more: call the work off, and tell when it has returned
)

// Step returns the process after an event, and what is to be done, in that order. It depends
// on nothing else than its arguments, and changes none of them. Now is a reading of a
// clock that does not go back. Due says when Step wants to be called again.
//
// Every Enter is followed by one event Returned with the number of the group, when the work
// for it has ended: also if it has ended by itself, and at once where there is none.
func Step(n Node, now time.Duration, e Event) (Node, []Effect) {
	n = clone(n)
	t := turn{Node: &n, now: now}
	t.take(e)
	for t.stage == running && t.settle() {
	}
	return n, t.out
}

// A turn is a step in the making.
type turn struct {
	*Node
	now time.Duration
	out []Effect
}

func (t *turn) send(to ID, m Message) {
	t.out = append(t.out, Effect{Kind: Send, To: to, Message: m})
}

func (t *turn) take(e Event) {
	switch {
	case t.stage == fresh && e.Kind == Start:
		t.stage, t.incarnation, t.seed = running, e.Incarnation, e.Incarnation
		t.meet(e.Peers)
		t.alone()
	case e.Kind == Returned && e.Number == t.work:
		t.work = Number{}
		if t.stage == running {
			t.stopped()
		}
	case t.stage != running:
	case e.Kind == Peers:
		t.meet(e.Peers)
	case e.Kind == Arrived && Check(e.From, e.Message) == nil && e.From != t.cfg.Self:
		t.receive(e.From, e.Message)
	case e.Kind == Quit:
		t.quit()
	}
}

func (t *turn) meet(peers []ID) {
	t.peers = slices.DeleteFunc(sorted(peers), func(id ID) bool { return id == t.cfg.Self })
}

func (t *turn) receive(from ID, m Message) {
	switch m := m.(type) {
	case Probe:
		t.probed(from, m)
	case Answer:
		t.answered(from, m)
	case Invite:
		t.invited(from, m)
	case Accept:
		t.accepted(from, m)
	case Join:
		t.joins(from, m)
	case Ready:
		t.ready(from, m)
	case Heartbeat:
		t.heard(from, m)
	case Alive:
		if v := t.voice(from); v != nil && t.inGroup(m.Number) {
			v.confirmed, v.missed = true, 0
		}
	case Gone:
		t.gone(from, m)
	}
}

// settle does one thing that is due, and reports whether there was one.
func (t *turn) settle() bool {
	switch r := &t.round; {
	case t.beats() && t.now >= t.beat:
		t.onBeat()
	case r.phase == looking && (r.complete() || t.now >= r.until):
		t.choose()
	case r.phase == looking && !r.again && t.now >= t.halfway():
		t.probeAgain()
	case r.phase == inviting && (r.complete() || t.now >= r.until):
		t.gather()
	case r.phase == joining && t.work.IsZero() && (r.complete() || t.now >= r.until):
		t.form()
	case r.phase == joining && t.now >= r.until:
		t.abandon()
	case t.leads() && !t.entered && t.now >= t.begin:
		t.enter(t.group)
	case t.mayLook() && t.now >= max(t.next, t.held):
		t.look()
	default:
		return false
	}
	return true
}

// quit leaves for good, and says so.
func (t *turn) quit() {
	switch {
	case t.round.phase == joining:
		for _, a := range t.round.asked {
			t.send(a.id, Gone{t.bound})
		}
	case !t.bound.IsZero():
		t.send(t.bound.By, Gone{t.bound})
	case t.leads():
		for _, id := range t.alive() {
			t.send(id, Gone{t.group.Number})
		}
	case !t.group.Number.IsZero():
		t.send(t.group.Leader(), Gone{t.group.Number})
	}
	t.leave()
	t.bound, t.stage = Number{}, quit
}
