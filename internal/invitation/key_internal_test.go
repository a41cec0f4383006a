package invitation

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// A writer writes what a world's future depends on. Times count from each process's now.
type writer struct {
	b   []byte
	now time.Duration
}

func (t *writer) count(n int) { t.b = binary.AppendUvarint(t.b, uint64(n)) }
func (t *writer) flag(set bool) {
	if set {
		t.count(1)
	} else {
		t.count(0)
	}
}

func (t *writer) id(id ID) {
	t.count(len(id))
	t.b = append(t.b, id...)
}

func (t *writer) ids(ids []ID) {
	t.count(len(ids))
	for _, id := range ids {
		t.id(id)
	}
}

func (t *writer) number(n Number) {
	t.id(n.By)
	t.b = binary.AppendUvarint(t.b, n.Incarnation)
	t.b = binary.AppendUvarint(t.b, n.Counter)
}

// ahead writes an instant that means nothing once it has passed.
func (t *writer) ahead(at time.Duration) { t.count(int(max(0, at-t.now))) }

// Text implements [explore.World].
func (w *world) Text() []byte {
	t := writer{b: make([]byte, 0, 1024)}
	for i := range w.actors {
		t.actor(&w.actors[i])
	}
	texts := make([][]byte, len(w.pool))
	for i, f := range w.pool {
		m := writer{}
		m.count(f.from)
		m.count(f.to)
		m.message(f.m)
		texts[i] = m.b
	}
	slices.SortFunc(texts, bytes.Compare)
	for _, text := range texts {
		t.count(len(text))
		t.b = append(t.b, text...)
	}
	t.history(w)
	t.count(w.faults)
	return t.b
}

// history writes what was entered, in no order, as far as it may yet be contradicted.
func (t *writer) history(w *world) {
	texts := make([][]byte, 0, len(w.entries)+len(w.claims))
	for _, e := range w.entries {
		if !w.matters(e.number) {
			continue
		}
		m := writer{}
		m.count(e.who)
		m.number(e.number)
		m.ids(e.members)
		texts = append(texts, m.b)
	}
	for _, c := range w.claims {
		if !w.matters(c.number) {
			continue
		}
		m := writer{}
		m.count(100 + c.who)
		m.number(c.number)
		texts = append(texts, m.b)
	}
	slices.SortFunc(texts, bytes.Compare)
	for _, text := range texts {
		t.b = append(t.b, text...)
	}
}

func (t *writer) actor(a *actor) {
	t.now = a.now
	t.flag(a.alive)
	t.count(int(a.starts))
	if !a.alive {
		return
	}
	t.number(a.in)
	t.number(a.work)
	t.flag(a.off)
	t.count(len(a.promised))
	t.node(&a.node)
}

func (t *writer) node(n *Node) {
	t.count(int(n.stage))
	t.b = binary.AppendUvarint(t.b, n.counter)
	t.number(n.group.Number)
	t.ids(n.group.Members)
	t.flag(n.entered)
	t.ahead(n.begin)
	t.number(n.work)
	t.number(n.bound)
	t.ahead(n.beat)
	t.count(n.missed)
	for _, v := range n.voices {
		t.id(v.id)
		t.flag(v.confirmed)
		t.count(v.missed)
		t.flag(v.lost)
	}
	t.round(&n.round)
	t.ahead(n.next)
	t.ahead(n.rests)
	t.ahead(n.held)
	t.number(n.holder)
	for _, y := range n.tries {
		t.id(y.peer)
		t.count(y.tries)
		t.ahead(y.last + n.cfg.Timing.forget())
	}
	t.b = binary.AppendUvarint(t.b, n.seed)
}

func (t *writer) round(r *round) {
	t.count(int(r.phase))
	t.number(r.number)
	t.ahead(r.until)
	t.flag(r.again)
	for _, g := range r.found {
		t.number(g.Number)
		t.ids(g.Members)
	}
	t.count(len(r.asked))
	for _, a := range r.asked {
		t.id(a.id)
		t.number(a.old)
		t.flag(a.answered)
		t.id(a.names)
	}
}

func (t *writer) message(m Message) {
	t.number(m.About())
	switch m := m.(type) {
	case Probe:
		t.count(1)
		t.count(m.Size)
	case Answer:
		t.count(2)
		t.number(m.Probe)
		t.ids(m.Members)
	case Invite:
		t.count(3)
		t.number(m.Old)
		t.count(m.Size)
	case Accept:
		t.count(4)
		t.number(m.Old)
	case Join:
		t.count(5)
		t.number(m.Old)
	case Ready:
		t.count(6)
	case Heartbeat:
		t.count(7)
		t.ids(m.Members)
	case Alive:
		t.count(8)
	case Gone:
		t.count(9)
	}
}
