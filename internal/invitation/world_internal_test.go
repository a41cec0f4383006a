package invitation

import (
	"fmt"
	"slices"
	"time"
)

// A world is processes and the messages between them. It watches that what is promised of
// groups holds, whatever happens.
type world struct {
	actors  []actor
	pool    []flight // what is on its way, in an exploration
	post    func(flight)
	entries []entry // every entry into a group that there ever was
	claims  []claim // every Gone that was ever sent
	faults  int     // that may still happen, in an exploration
	flaws   flaws
	trouble string
	told    func(i int, e Effect)
	careful bool // steps are watched to leave their arguments as they were
}

// An actor is a process: what its core believes, and the work that goes on.
type actor struct {
	id       ID
	cfg      Config
	node     Node
	now      time.Duration
	alive    bool
	starts   uint64
	in       Number   // of the group that it was told of and has not left
	work     Number   // that goes on
	off      bool     // and was called off
	promised []Number // in a protocol with flaws, groups that it waits for beside another
}

// A flight is a message on its way.
type flight struct {
	from, to int
	m        Message
}

type entry struct {
	who     int
	start   uint64
	number  Number
	members []ID
}

type claim struct {
	who    int
	number Number
}

func newWorld(size int, timing Timing, f flaws) *world {
	w := &world{flaws: f}
	for i := range size {
		id := ID(fmt.Sprintf("%0*d", len(fmt.Sprint(size)), i+1))
		w.actors = append(w.actors, actor{id: id, cfg: Config{id, timing}})
	}
	return w
}

func (w *world) clone() *world {
	v := *w
	v.actors, v.pool = slices.Clone(w.actors), slices.Clone(w.pool)
	v.entries, v.claims = slices.Clip(w.entries), slices.Clip(w.claims)
	return &v
}

func (w *world) ids() []ID {
	var all []ID
	for _, a := range w.actors {
		all = append(all, a.id)
	}
	return all
}

func (w *world) index(id ID) int {
	return slices.IndexFunc(w.actors, func(a actor) bool { return a.id == id })
}

func (w *world) wrong(format string, a ...any) {
	if w.trouble == "" {
		w.trouble = fmt.Sprintf(format, a...)
	}
}

// start starts a process that is not alive.
func (w *world) start(i int) {
	a := &w.actors[i]
	a.starts++
	incarnation := a.starts
	if w.flaws.sameIncarnation {
		incarnation = 1
	}
	a.node, a.alive, a.in, a.work, a.off, a.promised = New(a.cfg), true, Number{}, Number{}, false, nil
	w.step(i, Event{Kind: Start, Incarnation: 64*incarnation + uint64(i), Peers: w.ids()})
}

func (w *world) crash(i int) {
	a := &w.actors[i]
	a.alive, a.in, a.work, a.off = false, Number{}, Number{}, false
}

// step has a process take in an event.
func (w *world) step(i int, e Event) {
	a := &w.actors[i]
	e = w.distort(i, e)
	before := writer{}
	if w.careful {
		before.node(&a.node)
	}
	node, out := Step(a.node, a.now, e)
	if w.careful {
		after := writer{}
		if after.node(&a.node); !slices.Equal(before.b, after.b) {
			w.wrong("a step has changed its argument")
		}
	}
	a.node = node
	for _, e := range out {
		switch e.Kind {
		case Send:
			w.sends(i, e)
		case Enter:
			w.enters(i, e.Group)
		case Leave:
			if a.in != e.Group.Number {
				w.wrong("%s leaves %v and is in %v", a.id, e.Group.Number, a.in)
			}
			a.in, a.off = Number{}, !a.work.IsZero()
		}
		if w.told != nil {
			w.told(i, e)
		}
	}
	if due := node.Due(); due <= a.now {
		w.wrong("%s spins", a.id)
	}
}

// sends has a message leave, if it is one that its receiver would take.
func (w *world) sends(i int, e Effect) {
	to := w.index(e.To)
	if err := Check(w.actors[i].id, e.Message); err != nil {
		w.wrong("%s sends %T: %v", w.actors[i].id, e.Message, err)
	}
	if g, ok := e.Message.(Gone); ok && !slices.Contains(w.claims, claim{i, g.Number}) {
		w.claims = append(slices.Clip(w.claims), claim{i, g.Number})
	}
	w.send(flight{i, to, w.tamper(i, to, e.Message)})
}

func (w *world) send(f flight) {
	if w.post != nil {
		w.post(f)
	} else {
		w.put(f)
	}
}

// enters judges that a process is told of a group.
func (w *world) enters(i int, g Group) {
	a := &w.actors[i]
	switch {
	case !a.work.IsZero():
		w.wrong("%s enters %v while it works for %v", a.id, g.Number, a.work)
	case !a.in.IsZero():
		w.wrong("%s enters %v and is in %v", a.id, g.Number, a.in)
	case !g.Has(a.id) || !g.Has(g.Leader()):
		w.wrong("%s enters %v, led by %s, of %v", a.id, g.Number, g.Leader(), g.Members)
	case slices.Contains(w.claims, claim{i, g.Number}):
		w.wrong("%s enters %v, and has said that it never would", a.id, g.Number)
	}
	for _, e := range w.entries {
		switch {
		case e.number != g.Number:
		case e.who == i:
			w.wrong("%s enters %v twice", a.id, g.Number)
		case !slices.Equal(e.members, g.Members):
			w.wrong("%s enters %v of %v, and %s has entered it of %v", a.id, g.Number, g.Members, w.actors[e.who].id, e.members)
		}
	}
	w.entries = append(slices.Clip(w.entries), entry{i, a.starts, g.Number, g.Members})
	a.in, a.work, a.off = g.Number, g.Number, false
}

// arrives has a message arrive.
func (w *world) arrives(f flight) {
	if w.actors[f.to].alive {
		w.step(f.to, Event{Kind: Arrived, From: w.actors[f.from].id, Message: f.m})
	}
}

// returns has work come to its end.
func (w *world) returns(i int) {
	a := &w.actors[i]
	number := a.work
	a.work, a.off = Number{}, false
	w.step(i, Event{Kind: Returned, Number: number})
}

// mostFlights is how many messages are on their way at most in an exploration. When there
// are more, the oldest is lost.
const mostFlights = 6

func (w *world) put(f flight) {
	for _, g := range w.pool {
		if g.from == f.from && g.to == f.to && same(g.m, f.m) {
			return
		}
	}
	if w.pool = append(w.pool, f); len(w.pool) > mostFlights {
		w.pool = slices.Clone(w.pool[1:])
	}
}

func same(a, b Message) bool {
	switch a := a.(type) {
	case Answer:
		b, ok := b.(Answer)
		return ok && a.Probe == b.Probe && a.Number == b.Number && slices.Equal(a.Members, b.Members)
	case Heartbeat:
		b, ok := b.(Heartbeat)
		return ok && a.Number == b.Number && slices.Equal(a.Members, b.Members)
	}
	switch b.(type) {
	case Answer, Heartbeat:
		return false
	}
	return a == b
}

// prune drops messages that change nothing, whenever they arrive: what they are about is over for
// their receivers, and no number comes back.
func (w *world) prune() {
	w.pool = slices.DeleteFunc(slices.Clone(w.pool), func(f flight) bool {
		n := &w.actors[f.to].node
		switch m := f.m.(type) {
		case Answer:
			return !n.inGroup(m.Probe) && m.Number.By != w.actors[f.to].id
		case Invite:
			return !n.inGroup(m.Old) && !n.awaits(m.Old)
		case Accept:
			return n.round.number != m.Number
		case Alive:
			return !n.inGroup(m.Number)
		case Gone:
			return !n.inGroup(m.Number) && !n.awaits(m.Number)
		}
		return false
	})
}

// matters reports whether a number may yet be entered: whether anybody speaks of it.
func (w *world) matters(number Number) bool {
	for i := range w.actors {
		n := &w.actors[i].node
		if n.group.Number == number || n.bound == number || n.round.number == number {
			return true
		}
	}
	return slices.ContainsFunc(w.pool, func(f flight) bool {
		answer, ok := f.m.(Answer)
		return f.m.About() == number || ok && answer.Number == number
	})
}
