package invitation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A network is a world in one time: what is sent takes a while, and what is called off too.
type network struct {
	*world
	now    time.Duration
	random *rand.Rand
	queue  []happening // in the order of time
	steps  int

	latency func() time.Duration
	loss    float64
	double  float64
	deaf    map[[2]int]bool // what the first sends does not reach the second
	losing  map[string]int  // of messages of a kind, so many more are lost
	drain   []time.Duration // how long each one's work takes to stop
	asleep  []bool
	backlog [][]flight

	sent   map[string]int // messages, by kind
	leaves int
	enters int
}

// A happening is what comes at its time.
type happening struct {
	at   time.Duration
	what func()
}

func newNetwork(size int, timing Timing, seed uint64, f flaws) *network {
	n := &network{
		world: newWorld(size, timing, f), random: rand.New(rand.NewPCG(seed, 0)),
		deaf: map[[2]int]bool{}, losing: map[string]int{}, sent: map[string]int{},
		drain: make([]time.Duration, size), asleep: make([]bool, size), backlog: make([][]flight, size),
	}
	for i := range n.actors {
		n.actors[i].starts = seed * 1000 // incarnations differ from seed to seed
	}
	n.latency = func() time.Duration { return time.Millisecond }
	n.post, n.told = n.transmit, n.hears
	return n
}

func (n *network) at(d time.Duration, what func()) {
	h := happening{n.now + d, what}
	i, _ := slices.BinarySearchFunc(n.queue, h, func(a, b happening) int {
		if a.at <= b.at {
			return -1
		}
		return 1
	})
	n.queue = slices.Insert(n.queue, i, h)
}

func kindOf(m Message) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "invitation."))
}

// transmit has a message on its way, or lost.
func (n *network) transmit(f flight) {
	kind := kindOf(f.m)
	if h, ok := f.m.(Heartbeat); ok && len(h.Members) > 0 {
		kind = "formed"
	}
	n.sent[kind]++
	if n.losing[kind] > 0 {
		n.losing[kind]--
		return
	}
	if n.deaf[[2]int{f.from, f.to}] || n.random.Float64() < n.loss {
		return
	}
	n.at(n.latency(), func() { n.deliver(f) })
	if n.random.Float64() < n.double {
		n.at(n.latency()+time.Duration(n.random.Int64N(int64(20*time.Second))), func() { n.deliver(f) })
	}
}

func (n *network) deliver(f flight) {
	if n.asleep[f.to] {
		n.backlog[f.to] = append(n.backlog[f.to], f)
		return
	}
	n.sync(f.to)
	n.arrives(f)
}

// hears does what a runtime does about work.
func (n *network) hears(i int, e Effect) {
	a := &n.actors[i]
	switch e.Kind {
	case Enter:
		n.enters++
	case Leave:
		n.leaves++
		start := a.starts
		n.at(n.drain[i], func() { n.stops(i, start, e.Group.Number) })
	}
}

func (n *network) stops(i int, start uint64, number Number) {
	switch a := &n.actors[i]; {
	case a.starts != start || !a.alive || a.work != number:
	case n.asleep[i]:
		n.at(time.Second, func() { n.stops(i, start, number) })
	default:
		n.sync(i)
		n.returns(i)
	}
}

// sync has a process read the clock.
func (n *network) sync(i int) {
	n.steps++
	n.actors[i].now = n.now
}

func (n *network) begins(i int) {
	if !n.actors[i].alive {
		n.asleep[i], n.backlog[i] = false, nil
		n.sync(i)
		n.start(i)
	}
}

func (n *network) wakes(i int) {
	if !n.asleep[i] {
		return
	}
	n.asleep[i] = false
	backlog := n.backlog[i]
	n.backlog[i] = nil
	if n.random.IntN(2) == 0 {
		n.tick(i)
	}
	for _, f := range backlog {
		n.deliver(f)
	}
}

func (n *network) tick(i int) {
	n.sync(i)
	if n.actors[i].alive {
		n.step(i, Event{Kind: Tick})
	}
}

// run has time pass.
func (n *network) run(d time.Duration) {
	end := n.now + d
	for n.trouble == "" {
		at, who := end, -1
		for i := range n.actors {
			if a := &n.actors[i]; a.alive && !n.asleep[i] && a.node.Due() < at {
				at, who = a.node.Due(), i
			}
		}
		switch {
		case len(n.queue) > 0 && n.queue[0].at <= at:
			h := n.queue[0]
			n.queue = n.queue[1:]
			n.now = max(n.now, h.at)
			h.what()
		case who >= 0:
			n.now = max(n.now, at)
			n.tick(who)
		default:
			n.now = end
			return
		}
	}
}

// until has time pass until something holds, in steps of a tenth of a second, and returns
// how long that took.
func (n *network) until(most time.Duration, holds func() bool) (took time.Duration, ok bool) {
	began := n.now
	for n.now < began+most && n.trouble == "" {
		if holds() {
			return n.now - began, true
		}
		n.run(100 * time.Millisecond)
	}
	return n.now - began, holds()
}

// one reports whether all that are alive are in one group, of all of them.
func (n *network) one() bool {
	var all []ID
	number := Number{}
	for i := range n.actors {
		if a := &n.actors[i]; a.alive {
			all = append(all, a.id)
			number = a.in
		}
	}
	for i := range n.actors {
		a := &n.actors[i]
		if g, ok := a.node.Group(); a.alive && (!ok || g.Number != number || a.in != number || !slices.Equal(g.Members, all)) {
			return false
		}
	}
	return true
}

// groups tells which groups there are.
func (n *network) groups() string {
	var all []string
	for i := range n.actors {
		a := &n.actors[i]
		if g, ok := a.node.Group(); ok && g.Leader() == a.id {
			all = append(all, fmt.Sprint(g.Members))
		}
	}
	return strings.Join(all, " ")
}

// parts cuts the network into parts: each process is in the part with its number.
func (n *network) parts(part []int) {
	for i := range n.actors {
		for j := range n.actors {
			n.deaf[[2]int{i, j}] = part[i] != part[j]
		}
	}
}

func (n *network) total() int {
	all := 0
	for _, c := range n.sent {
		all += c
	}
	return all
}
