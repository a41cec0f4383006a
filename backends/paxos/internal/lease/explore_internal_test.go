package lease

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/explore"
	"github.com/electkv/election/internal/mistake"
)

// depthVariable names the environment variable for a deeper run than CI's.
const depthVariable = "PAXOS_DEPTH"

// A move is one thing that can happen next.
type move struct {
	fmt.Stringer // its name

	do func(*world)
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

// Moves implements [explore.World]. Nothing has to happen: a message that never
// arrives is lost, one that arrives twice is a duplicate, and any may come first.
// Faults are what happens so many times at most: a restart, a crash, an operation that
// is given up, an answer that comes later than at once.
func (w *world) Moves() []move {
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

// After implements [explore.World].
func (w *world) After(m move) *world {
	v := w.clone()
	m.do(v)
	v.prune()
	return v
}

// Trouble implements [explore.World].
func (w *world) Trouble() string { return w.trouble }

type explorer = explore.Explorer[*world, move]

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

// hasFound fails the test unless what an exploration has found has a word in it.
func hasFound(t *testing.T, found, word string) {
	t.Helper()
	if found == "" || !strings.Contains(found, word) {
		mistake.Missed(t, fmt.Sprintf("the exploration says %q", found))
	}
	t.Log(found)
}

func TestTheExplorationFindsAQuarantineThatIsTooShort(t *testing.T) {
	w := led(t, flaws{quarantine: 1})
	w.faults = 1
	hasFound(t, new(explorer).Run(w, 7), "two owners")
}

func TestTheExplorationFindsAcceptorsThatCountFast(t *testing.T) {
	hasFound(t, new(explorer).Run(led(t, flaws{fastAcceptors: 1000}), 7), "")
}

func TestTheExplorationFindsAcceptorsThatBreakTheirPromises(t *testing.T) {
	hasFound(t, new(explorer).Run(young(flaws{faithless: true, overwriteLive: true}), 10), "")
}

func TestTheExplorationFindsACounterThatIsTakenForRefusedForGood(t *testing.T) {
	hasFound(t, new(explorer).Run(bounded(t, flaws{voidFar: true}), 7), "retracted")
}

func TestTheExplorationFindsWhatIsRetractedTooSoon(t *testing.T) {
	for name, f := range map[string]flaws{"any refusal": {anyRefusal: true}, "any end": {anyEnd: true}} {
		w := duelling(t, f)
		w.faults = 1
		t.Log(name)
		hasFound(t, new(explorer).Run(w, 7), "retracted")
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
				var (
					e       explorer
					elected atomic.Int64 // worlds in which another lease was granted
				)
				e.Met = func(w *world) {
					if w.token > c.w.token {
						elected.Add(1)
					}
				}
				require.Empty(t, e.Run(c.w, c.depth))
				t.Logf("%d moves deep, up to %d faults: %d different worlds, %d moves, %d worlds with an election", c.depth, c.faults, e.Worlds.Load(), e.Steps.Load(), elected.Load())
				require.Positive(t, elected.Load())
			})
		}
	}
}
