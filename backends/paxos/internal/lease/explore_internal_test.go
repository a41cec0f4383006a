package lease

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// depthVariable names the environment variable for a deeper run than CI's.
const depthVariable = "PAXOS_DEPTH"

// A move is one thing that can happen next.
type move struct {
	name fmt.Stringer
	do   func(*world)
}

// A title is the name of a move; a flight's is written when somebody reads it.
type title string

func (t title) String() string { return string(t) }

// A journey is the title of a flight's arrival.
type journey struct {
	f    flight
	what title
}

func (j journey) String() string {
	ends := []string{"A", "B", "C", "p", "q", "r"}
	return fmt.Sprintf("%s: %s → %s: %T %v", j.what, ends[j.f.from], ends[j.f.to], j.f.m, ballotOf(j.f.m))
}

// moves returns everything that can happen next. Nothing has to: a message that never
// arrives is lost, one that arrives twice is a duplicate, and any may come first.
// Faults are what happens so many times at most: a restart, a crash, an operation that
// is given up, an answer that comes later than at once.
func (w *world) moves() []move {
	all := []move{{title("tick"), func(w *world) { w.tick(1) }}}
	for i, c := range w.candidates {
		all = append(all, w.candidateMoves(i, c)...)
	}
	for i, f := range w.pool {
		if f.to >= len(w.acceptors) {
			all = append(all, move{journey{f, "a late answer"}, func(w *world) { w.tell(w.pool[i]) }})
			continue
		}
		all = append(all, move{journey{f, "an exchange"}, func(w *world) {
			if answer, ok := w.ask(w.pool[i]); ok {
				w.tell(answer)
			}
		}})
	}
	if w.faults > 0 {
		all = append(all, w.faultMoves()...)
	}
	return all
}

func (w *world) faultMoves() []move {
	var all []move
	fault := func(name fmt.Stringer, do func(w *world)) {
		all = append(all, move{name, func(w *world) { w.faults--; do(w) }})
	}
	restarted, crashed := 0, 0
	for _, n := range w.restarts {
		restarted += n
	}
	for _, c := range w.candidates {
		crashed += c.crashes
	}
	for i := range w.acceptors {
		if restarted == 0 {
			fault(title('A'+rune(i))+" restarts", func(w *world) { w.restart(i) })
		}
	}
	for i, c := range w.candidates {
		if crashed == 0 && c.ops > 0 {
			fault(title(c.p.Self+" crashes"), func(w *world) { w.crash(i) })
		}
		if c.op != nil {
			fault(title(c.p.Self+" gives up"), func(w *world) { w.abandon(i) })
		}
	}
	for i, f := range w.pool {
		if f.to < len(w.acceptors) {
			fault(journey{f, "an answer is delayed"}, func(w *world) {
				if answer, ok := w.ask(w.pool[i]); ok {
					w.post(answer)
					w.prune()
				}
			})
		}
	}
	return all
}

const mostOperations = 3

func (w *world) candidateMoves(i int, c candidate) []move {
	var all []move
	begin := func(k Kind, name MemberID) {
		all = append(all, move{title(c.p.Self + " begins to " + name), func(w *world) { w.begin(i, k) }})
	}
	switch {
	case c.op == nil && c.ops < mostOperations && w.owns(c):
		begin(Refresh, "refresh")
		begin(Delete, "delete")
	case c.op == nil && c.ops < mostOperations:
		begin(Create, "create")
	case c.op != nil && (c.op.phase == resting && w.now >= c.op.again || w.now >= c.op.sent+w.terms.Round):
		all = append(all, move{title(c.p.Self + " wakes"), func(w *world) { w.wake(i) }})
	}
	return all
}

// An explorer looks at every world that can come about in so many moves.
type explorer struct {
	keeper keeper
	shards [64]struct {
		sync.Mutex
		seen map[key]int8 // moves that were left
	}
	worlds  atomic.Int64
	steps   atomic.Int64
	elected atomic.Int64
	found   atomic.Pointer[string]
}

func newExplorer() *explorer {
	e := &explorer{keeper: newKeeper()}
	for i := range e.shards {
		e.shards[i].seen = map[key]int8{}
	}
	return e
}

// news reports whether a world was not seen with so many moves left, or more.
func (e *explorer) news(w *world, left int) bool {
	k := e.keeper.key(w)
	s := &e.shards[k[0]%uint64(len(e.shards))]
	s.Lock()
	defer s.Unlock()
	before, ok := s.seen[k]
	if ok && int(before) >= left {
		return false
	}
	if !ok {
		e.worlds.Add(1)
	}
	s.seen[k] = int8(left)
	return true
}

// from explores what can come of a world.
func (e *explorer) from(w *world, left int, path []fmt.Stringer) {
	if left == 0 || e.found.Load() != nil {
		return
	}
	for _, m := range w.moves() {
		v := w.clone()
		m.do(v)
		v.prune()
		e.steps.Add(1)
		way := append(path, m.name)
		if v.trouble != "" {
			text := v.trouble + "\n  " + tale(way)
			e.found.CompareAndSwap(nil, &text)
			return
		}
		if v.token > w.token {
			e.elected.Add(1)
		}
		if e.news(v, left-1) {
			e.from(v, left-1, way)
		}
	}
}

func tale(path []fmt.Stringer) string {
	var all []string
	for _, m := range path {
		all = append(all, m.String())
	}
	return strings.Join(all, "\n  ")
}

// run explores with all processors.
func (e *explorer) run(w *world, depth int) {
	type start struct {
		w    *world
		path []fmt.Stringer
	}
	starts := []start{{w, nil}}
	split := min(3, depth)
	for range split {
		var next []start
		for _, s := range starts {
			for _, m := range s.w.moves() {
				v := s.w.clone()
				m.do(v)
				v.prune()
				next = append(next, start{v, append(slices.Clone(s.path), m.name)})
			}
		}
		starts = next
	}
	var all sync.WaitGroup
	work := make(chan start)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := range work {
				if e.news(s.w, depth-split) {
					e.from(s.w, depth-split, s.path)
				}
			}
		})
	}
	for _, s := range starts {
		work <- s
	}
	close(work)
	all.Wait()
}

// small is a world of two candidates in which two units are a life.
func small(f flaws) *world {
	w := newWorld(f)
	w.terms.MaxTTL, w.terms.Round = 2, 2
	w.acceptors, w.candidates = nil, nil
	return w.fill(2)
}

// young is a small world in which nothing has happened. Two elections take ten moves.
func young(f flaws) *world {
	w := small(f)
	w.candidates[q].counter = 5
	return w
}

// led is a small world in which p leads by the leave of A and B, and C has heard
// nothing yet.
func led(t *testing.T, f flaws) *world {
	w := small(f)
	script{t, w}.does(p, Create, "AB")
	require.True(t, w.owns(w.candidates[p]))
	w.candidates[q].counter = 5
	return w
}

// duelling is a small world in which A, B and C have promised p's ballot, and its
// proposals are on their way; q has just begun to overtake it.
func duelling(t *testing.T, f flaws) *world {
	w := young(f)
	s := script{t, w}
	s.begin(p, Create)
	s.meets(p, "ABC")
	w.begin(q, Create)
	return w
}

// bounded is a small world in which A finds all ballots too high until the first tick: it
// has refused p's, which B and C have promised. q has just begun to overtake it.
func bounded(t *testing.T, f flaws) *world {
	w := young(f)
	w.acceptors[0].limit = Limit{next: 1}
	s := script{t, w}
	s.begin(p, Create)
	s.meets(p, "ABC")
	require.True(t, w.candidates[p].op.voices[0].refused)
	w.begin(q, Create)
	return w
}

func TestTheExplorationFindsAQuarantineThatIsTooShort(t *testing.T) {
	w := led(t, flaws{quarantine: 1})
	w.faults = 1
	e := newExplorer()
	e.run(w, 7)
	require.NotNil(t, e.found.Load(), "%d worlds, and none has two owners", e.worlds.Load())
	require.Contains(t, *e.found.Load(), "two owners")
	t.Log(*e.found.Load())
}

func TestTheExplorationFindsAcceptorsThatCountFast(t *testing.T) {
	w := led(t, flaws{fastAcceptors: 1000})
	e := newExplorer()
	e.run(w, 7)
	require.NotNil(t, e.found.Load(), "%d worlds, and none has two owners", e.worlds.Load())
}

func TestTheExplorationFindsAcceptorsThatBreakTheirPromises(t *testing.T) {
	e := newExplorer()
	e.run(young(flaws{faithless: true, overwriteLive: true}), 10)
	require.NotNil(t, e.found.Load(), "%d worlds, and none has two owners", e.worlds.Load())
}

func TestTheExplorationFindsACounterThatIsTakenForRefusedForGood(t *testing.T) {
	e := newExplorer()
	e.run(bounded(t, flaws{voidFar: true}), 7)
	require.NotNil(t, e.found.Load(), "%d worlds, and in none was anything retracted that was decided on", e.worlds.Load())
	require.Contains(t, *e.found.Load(), "retracted")
	t.Log(*e.found.Load())
}

func TestTheExplorationFindsWhatIsRetractedTooSoon(t *testing.T) {
	for name, f := range map[string]flaws{"any refusal": {anyRefusal: true}, "any end": {anyEnd: true}} {
		w := duelling(t, f)
		w.faults = 1
		e := newExplorer()
		e.run(w, 7)
		require.NotNil(t, e.found.Load(), "%s: %d worlds, and in none was anything retracted that was decided on", name, e.worlds.Load())
		require.Contains(t, *e.found.Load(), "retracted")
		t.Log(*e.found.Load())
	}
}

// A deeper run: PAXOS_DEPTH=11,1 go test -run EverySchedule -v -timeout 2h
func TestEveryScheduleHasOneOwner(t *testing.T) {
	type extent struct{ depth, faults int }
	fresh, leading, duel, limit := extent{10, 0}, extent{8, 1}, extent{7, 1}, extent{6, 1}
	if text := os.Getenv(depthVariable); text != "" {
		_, err := fmt.Sscanf(text, "%d,%d", &fresh.depth, &fresh.faults)
		require.NoError(t, err, "%s=moves,faults", depthVariable)
		leading, duel, limit = fresh, fresh, fresh
	}
	for _, durable := range []bool{false, true} {
		for name, c := range map[string]struct {
			w *world
			extent
		}{
			"a new cluster":           {young(flaws{}), fresh},
			"a cluster with a leader": {led(t, flaws{}), leading},
			"a duel":                  {duelling(t, flaws{}), duel},
			"a limit":                 {bounded(t, flaws{}), limit},
		} {
			t.Run(fmt.Sprintf("%s, promises on disk: %v", name, durable), func(t *testing.T) {
				c.w.durable, c.w.faults = durable, c.faults
				e := newExplorer()
				e.run(c.w, c.depth)
				t.Logf("%d moves deep, up to %d faults: %d different worlds, %d moves, %d elections", c.depth, c.faults, e.worlds.Load(), e.steps.Load(), e.elected.Load())
				if found := e.found.Load(); found != nil {
					require.Fail(t, *found)
				}
				require.Positive(t, e.elected.Load())
			})
		}
	}
}
