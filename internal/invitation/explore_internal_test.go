package invitation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/explore"
)

// depthVariable names the environment variable for a deeper run: "moves,faults".
const depthVariable = "GROUP_DEPTH"

// small is a timing in which nothing is drawn, and everything is due soon.
var small = Timing{Heartbeat: 1, Misses: 1, Round: 1, Look: 1, Drain: 2}

// A move is one thing that can happen next.
type move struct {
	what  action
	i     int
	f     flight
	fault bool
}

type action uint8

const (
	ticks action = iota
	arrives
	doubles
	returns
	crashes
	restarts
	quits
)

func (m move) String() string {
	switch m.what {
	case arrives, doubles:
		text := fmt.Sprintf("%d → %d: %T%+v", m.f.from+1, m.f.to+1, m.f.m, m.f.m)
		if m.what == doubles {
			text += ", and again later"
		}
		return strings.Replace(text, "invitation.", "", 1)
	}
	return fmt.Sprintf("%d %s", m.i+1, [...]string{"ticks", "", "", "has stopped its work", "crashes", "starts", "quits"}[m.what])
}

// Moves implements [explore.World]. Nothing has to happen: a message that never
// arrives is lost, and any may come first, so a partition is one of the things that can happen. Each process
// has a clock of its own. Faults are what happens so many times at most.
func (w *world) Moves() []move {
	all := make([]move, 0, 16)
	for i := range w.actors {
		a := &w.actors[i]
		switch {
		case !a.alive:
			all = append(all, move{what: restarts, i: i})
			continue
		case a.off:
			all = append(all, move{what: returns, i: i})
		}
		if a.node.Due() != never {
			all = append(all, move{what: ticks, i: i})
		}
		if w.faults > 0 {
			all = append(all, move{what: crashes, i: i, fault: true})
			if a.node.stage == running {
				all = append(all, move{what: quits, i: i, fault: true})
			}
		}
	}
	for _, f := range w.pool {
		if !w.actors[f.to].alive {
			continue
		}
		all = append(all, move{what: arrives, f: f})
		if w.faults > 0 {
			all = append(all, move{what: doubles, f: f, fault: true})
		}
	}
	return all
}

func (w *world) do(m move) {
	if m.fault {
		w.faults--
	}
	a := &w.actors[m.i]
	switch m.what {
	case ticks:
		a.now = max(a.now, a.node.Due())
		w.step(m.i, Event{Kind: Tick})
	case arrives:
		w.pool = slices.DeleteFunc(w.pool, func(f flight) bool { return f.from == m.f.from && f.to == m.f.to && same(f.m, m.f.m) })
		w.arrives(m.f)
	case doubles:
		w.arrives(m.f)
	case returns:
		w.returns(m.i)
	case crashes:
		w.crash(m.i)
	case restarts:
		w.start(m.i)
	case quits:
		w.step(m.i, Event{Kind: Quit})
	}
	w.prune()
}

// After implements [explore.World].
func (w *world) After(m move) *world {
	v := w.clone()
	v.do(m)
	return v
}

// Trouble implements [explore.World].
func (w *world) Trouble() string { return w.trouble }

// An explorer also counts the worlds in which a group of several was entered.
type explorer struct {
	explore.Explorer[*world, move]
	merged atomic.Int64
}

func newExplorer() *explorer {
	e := &explorer{}
	e.Met = func(w *world) {
		if slices.ContainsFunc(w.entries, func(e entry) bool { return len(e.members) > 1 }) {
			e.merged.Add(1)
		}
	}
	return e
}

// A script drives a world by hand to where an exploration begins.
type script struct {
	t *testing.T
	*world
}

// young are three processes that have just started, and probe each other.
func young(t *testing.T, f flaws) *world {
	w := newWorld(3, small, f)
	for i := range w.actors {
		w.start(i)
	}
	return w
}

// gets has the messages of a kind between two processes arrive.
func (s script) gets(from, to int, kind Message) {
	s.t.Helper()
	i := slices.IndexFunc(s.pool, func(f flight) bool {
		return f.from == from-1 && f.to == to-1 && fmt.Sprintf("%T", f.m) == fmt.Sprintf("%T", kind)
	})
	require.GreaterOrEqual(s.t, i, 0, "no %T from %d to %d in %+v", kind, from, to, s.pool)
	s.do(move{what: arrives, f: s.pool[i]})
}

// settles has all messages arrive and all work that was called off return, between those
// processes, and loses the others.
func (s script) settles(among ...int) {
	for {
		i := slices.IndexFunc(s.pool, func(f flight) bool { return slices.Contains(among, f.from+1) && slices.Contains(among, f.to+1) })
		j := slices.IndexFunc(s.actors, func(a actor) bool { return a.off })
		switch {
		case i >= 0:
			s.do(move{what: arrives, f: s.pool[i]})
		case j >= 0:
			s.returns(j)
		default:
			s.pool = nil
			return
		}
	}
}

// tick has the clock of a process go on to when it is due.
func (s script) tick(i int) { s.do(move{what: ticks, i: i - 1}) }

// until has it go on until something holds.
func (s script) until(i int, holds func(n *Node) bool) {
	s.t.Helper()
	for range 20 {
		if holds(&s.actors[i-1].node) {
			return
		}
		s.tick(i)
	}
	require.FailNow(s.t, "it does not come about")
}

func isPhase(p phase) func(n *Node) bool { return func(n *Node) bool { return n.round.phase == p } }

// invited are three groups of one: 1 has invited both others, which have not heard of it.
func invited(t *testing.T, f flaws) *world {
	s := script{t, young(t, f)}
	s.pool = nil
	s.until(1, isPhase(idle))
	s.until(1, isPhase(looking))
	for _, i := range []int{2, 3} {
		s.gets(1, i, Probe{})
	}
	s.gets(2, 1, Answer{})
	s.gets(3, 1, Answer{})
	require.Equal(t, inviting, s.actors[0].node.round.phase)
	s.pool = slices.DeleteFunc(s.pool, func(f flight) bool { return f.from != 0 })
	return s.world
}

// joiningAll are three processes that 1 has told to leave their groups of one.
func joiningAll(t *testing.T, f flaws) *world {
	s := script{t, invited(t, f)}
	for _, i := range []int{2, 3} {
		s.gets(1, i, Invite{})
		s.gets(i, 1, Accept{})
	}
	require.Equal(t, joining, s.actors[0].node.round.phase)
	return s.world
}

// pair are a group of 1 and 2, in which both work, and 3 alone, which 1 has told to
// join them.
func pair(t *testing.T, f flaws) *world {
	s := script{t, young(t, f)}
	s.pool = nil
	s.until(3, func(n *Node) bool { return n.entered })
	s.pool = nil
	s.until(1, isPhase(idle))
	s.until(1, isPhase(looking))
	s.settles(1, 2)
	s.until(1, isPhase(inviting))
	s.settles(1, 2)
	require.Len(t, s.actors[1].node.group.Members, 2)
	s.until(1, isPhase(looking))
	s.gets(1, 3, Probe{})
	s.gets(3, 1, Answer{})
	s.gets(1, 3, Invite{})
	s.gets(3, 1, Accept{})
	require.Equal(t, joining, s.actors[0].node.round.phase)
	s.pool = slices.DeleteFunc(s.pool, func(f flight) bool { _, ok := f.m.(Join); return !ok })
	return s.world
}

// rivals are three groups of one in which 1 and 2 have both invited 3, and each has its word:
// their clocks differ so much that 3 has given it twice.
func rivals(t *testing.T, f flaws) *world {
	s := script{t, young(t, f)}
	s.pool = nil
	var joins []flight
	for _, i := range []int{2, 1} {
		s.until(i, isPhase(idle))
		s.until(i, isPhase(looking))
		s.gets(i, 3, Probe{})
		s.gets(3, i, Answer{})
		s.pool = nil
		s.until(i, isPhase(inviting))
		s.gets(i, 3, Invite{})
		s.gets(3, i, Accept{})
		require.Equal(t, joining, s.actors[i-1].node.round.phase)
		joins, s.pool = append(joins, s.pool...), nil
		s.actors[2].now = max(s.actors[2].now, s.actors[2].node.held)
	}
	s.pool = joins
	require.Len(t, s.pool, 2)
	return s.world
}

// grown are three processes in one group, of which 3 has not heard yet.
func grown(t *testing.T, f flaws) *world {
	s := script{t, joiningAll(t, f)}
	for _, i := range []int{2, 3} {
		s.gets(1, i, Join{})
		s.gets(i, 1, Ready{})
	}
	s.gets(1, 2, Heartbeat{})
	s.gets(2, 1, Alive{})
	require.Len(t, s.actors[0].node.group.Members, 3)
	return s.world
}

func starts(t *testing.T, f flaws) map[string]*world {
	return map[string]*world{
		"three that start":                     young(t, f),
		"three groups of one, and invitations": invited(t, f),
		"three that are told to join":          joiningAll(t, f),
		"a pair and a third that is to join":   pair(t, f),
		"two that invite the third":            rivals(t, f),
		"a group that one has not heard of":    grown(t, f),
	}
}

// A deeper run: GROUP_DEPTH=9,2 go test -run EverySchedule -v -timeout 2h
func TestInEverySchedulePromisesHold(t *testing.T) {
	depth, faults := 7, 2
	if testing.Short() {
		depth = 5
	}
	if text := os.Getenv(depthVariable); text != "" {
		_, err := fmt.Sscanf(text, "%d,%d", &depth, &faults)
		require.NoError(t, err, "%s=moves,faults", depthVariable)
	}
	for name, w := range starts(t, flaws{}) {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, w.trouble)
			w.faults = faults
			began, depth := time.Now(), depth
			if len(w.entries) == 0 && len(w.pool) == mostFlights {
				depth-- // probes and their answers, in all orders
			}
			e := newExplorer()
			require.Empty(t, e.Run(w, depth))
			t.Logf("%d moves deep, up to %d faults: %d different worlds, %d moves, %d worlds in which some have merged; %v", depth, faults, e.Worlds.Load(), e.Steps.Load(), e.merged.Load(), time.Since(began))
		})
	}
}
