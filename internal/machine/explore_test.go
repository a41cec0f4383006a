package machine_test

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A move is one thing that may happen next.
type move struct {
	what string
	cost int // in faults
	do   func(w *world)
}

// moves returns all that may happen in a world.
func (w *world) moves() []move {
	var ms []move
	add := func(cost int, do func(w *world), format string, args ...any) {
		if cost <= w.faults {
			ms = append(ms, move{fmt.Sprintf(format, args...), cost, do})
		}
	}
	busy := false
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.cfg != nil && w.runs > 0 && (!n.alive || n.c.Stage == machine.Done) {
			add(0, func(w *world) { w.runs--; w.stand(i) }, "%d: stand again", i)
		}
		if !n.alive {
			continue
		}
		for k, r := range n.sent {
			k := machine.Key(k)
			if r.Op == machine.NoOp || n.cut > 0 || n.paused > 0 {
				continue
			}
			if a := n.answers[k]; a.on {
				add(0, func(w *world) { w.answer(i, k, a.verdict, a.record) }, "%d: the answer to %v %v arrives", i, r.Op, r.Key)
				continue
			}
			busy = true
			if r.Op == machine.HandOver && w.store.steps && !n.peeked {
				add(0, func(w *world) {
					if w.nodes[i].peeked = w.store.stands(r.Heir, w.now); !w.nodes[i].peeked {
						w.answer(i, k, machine.Stale, kv.Record{})
					}
				}, "%d: look at the heir", i)
				continue
			}
			add(1, func(w *world) {
				v, rec := w.carry(r, w.now)
				w.nodes[i].answers[k] = answer{true, v, rec}
			}, "%d: %v %v, the answer is slow", i, r.Op, r.Key)
			add(0, func(w *world) {
				v, rec := w.carry(r, w.now)
				w.answer(i, k, v, rec)
			}, "%d: %v %v", i, r.Op, r.Key)
			add(1, func(w *world) {
				w.carry(r, w.now)
				w.answer(i, k, machine.Unclear, kv.Record{})
			}, "%d: %v %v, the answer is lost", i, r.Op, r.Key)
			add(1, func(w *world) {
				if w.giveUp(i, r) {
					w.answer(i, k, machine.Unclear, kv.Record{})
				}
			}, "%d: %v %v, late", i, r.Op, r.Key)
		}
		if n.paused > 0 {
			continue
		}
		if n.term {
			add(0, func(w *world) { w.step(i, machine.Event{Kind: machine.Release, Within: 2}) }, "%d: release", i)
		} else if n.c.Stage == machine.Standing {
			add(1, func(w *world) { w.step(i, machine.Event{Kind: machine.Withdraw, Within: 2}) }, "%d: withdraw", i)
		}
		add(1, func(w *world) { w.nodes[i] = node{cfg: n.cfg, runs: n.runs} }, "%d: crash", i)
		if n.paused == 0 {
			add(1, func(w *world) { w.nodes[i].paused = 7 }, "%d: is paused", i)
		}
		if n.cut == 0 {
			add(1, func(w *world) { w.nodes[i].cut, w.nodes[i].lag = 7, 7 }, "%d: is cut off", i)
		}
		if n.lag == 0 {
			add(1, func(w *world) { w.nodes[i].lag = 2 }, "%d: its watches are slow", i)
		}
	}
	for j, l := range w.late {
		if l.req.Op != machine.NoOp {
			add(0, func(w *world) {
				w.late[j] = copyOf{}
				w.carry(l.req, w.now)
				if l.req.Op == machine.Create && w.now-l.born > timing.TTL || l.req.Op == machine.HandOver && w.store.steps { // nobody looks for it so long
					w.store.again[l.req.Key] = true
				}
			}, "late: %v %v of %d", l.req.Op, l.req.Key, l.of)
		}
	}
	cost := 0
	if busy {
		cost = 1
	}
	add(cost, (*world).tick, "tick")
	return ms
}

// tick lets time pass.
func (w *world) tick() {
	w.now++
	for i := range w.nodes {
		n := &w.nodes[i]
		if !n.alive {
			continue
		}
		n.lag, n.cut = max(n.lag-1, 0), max(n.cut-1, 0)
		if n.paused > 0 { // and when it runs again, anything may come before a tick
			n.paused--
			continue
		}
		for k, r := range n.sent {
			if r.Op != machine.NoOp && w.now-n.since[k] >= r.Within {
				if !n.answers[k].on && (r.Op != machine.HandOver || !w.store.steps || n.peeked) {
					w.giveUp(i, r)
				}
				w.answer(i, machine.Key(k), machine.Unclear, kv.Record{})
			}
		}
		w.step(i, machine.Event{Kind: machine.Tick})
	}
}

// show has the watches show what is there.
func (w *world) show() {
	for again := true; again; {
		again = false
		for i := range w.nodes {
			for k := range machine.Key(2) {
				n := &w.nodes[i]
				if s := w.look(k); n.alive && n.open[k] && n.lag == 0 && n.paused == 0 && n.seen[k] != s {
					n.seen[k], again = s, true
					w.step(i, machine.Event{Kind: machine.Saw, Key: k, Sighting: s})
				}
			}
		}
	}
}

// check returns what is wrong with a world.
func (w *world) check() string {
	if w.wrong != "" {
		return w.wrong
	}
	leader := -1
	for i, n := range w.nodes {
		if !n.alive || !n.term || n.told || n.trust.Left(at(w.now)) <= 0 {
			continue
		}
		if leader >= 0 {
			return fmt.Sprintf("%d and %d lead", leader, i)
		}
		leader = i
		if rec, ok := w.store.live(machine.Lead, w.now); !ok || rec.Signature != n.c.Lead.Signature {
			return fmt.Sprintf("%d leads without the record", i)
		}
	}
	for k := range machine.Key(2) {
		if wrong := w.unaccounted(k); wrong != "" {
			return wrong
		}
	}
	return ""
}

// unaccounted reports a record of a living campaign that it does not know of.
func (w *world) unaccounted(k machine.Key) string {
	rec, ok := w.store.live(k, w.now)
	if !ok || w.store.again[machine.Lead] || w.store.again[machine.Place] {
		return ""
	}
	for i, n := range w.nodes {
		if !n.alive || n.c.Stage != machine.Standing || !strings.HasPrefix(rec.Signature, fmt.Sprintf("%d/n%d.", i, n.runs-1)) {
			continue
		}
		l := n.c.Lead
		if k == machine.Place {
			l = n.c.Place
		}
		if n.left == [2]bool{} && l.Remains.Kind == machine.Nothing && n.sent[k].Op == machine.NoOp && !n.open[k] && n.c.Place.Remains.Kind == machine.Nothing && n.sent[machine.Place].Op == machine.NoOp {
			return fmt.Sprintf("%d does not know of its record in the %v's key", i, k)
		}
	}
	return ""
}

var timing = machine.Timing{TTL: 6, Refresh: 2, Attempt: 2, Spread: 2, Pause: 2, Crowd: 2, Stage: 1, Lull: 1}

func newWorld(leases bool, candidates, faults int, change func(*machine.Config)) *world {
	w := &world{store: store{leases: leases}, faults: faults, stats: &stats{}}
	for i := range candidates {
		cfg := &machine.Config{ID: fmt.Sprint(i), Nonce: "n", Timing: timing, Stability: 10, Fading: 6}
		if change != nil {
			change(cfg)
		}
		w.nodes[i].cfg, w.store.steps = cfg, cfg.Steps
		w.stand(i)
	}
	return w
}

// begin begins another campaign of a node.
func (w *world) stand(i int) {
	n := w.nodes[i]
	cfg := *n.cfg
	cfg.Nonce = fmt.Sprint("n", n.runs)
	w.nodes[i] = node{alive: true, cfg: n.cfg, runs: n.runs + 1, c: *machine.New(&cfg, n.c.Memory)}
	w.step(i, machine.Event{Kind: machine.Enter, Drain: true})
}

type origin struct {
	parent int32
	move   int16
}

// explore visits all worlds that so many moves lead to, as long as they are fewer than most.
func explore(t *testing.T, start *world, depth, most int) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	start.stats.canon = machine.Canon{}
	origins := []origin{{-1, 0}}
	level, ids := []world{*start}, []int32{0}
	began, terms := time.Now(), 0
	for d := 0; d < depth && len(level) > 0; d++ {
		var next []world
		var nextIDs []int32
		for at := range level {
			for m, mv := range level[at].moves() {
				w := level[at]
				w.faults -= mv.cost
				mv.do(&w)
				w.show()
				h := maphash.Comparable(seed, w)
				if _, ok := seen[h]; ok {
					continue
				}
				seen[h] = struct{}{}
				origins = append(origins, origin{ids[at], int16(m)})
				id := int32(len(origins) - 1)
				if wrong := w.check(); wrong != "" {
					require.FailNow(t, wrong, "%s", story(start, origins, id))
				}
				if w.nodes[0].term || w.nodes[1].term {
					terms++
				}
				next, nextIDs = append(next, w), append(nextIDs, id)
			}
		}
		level, ids = next, nextIDs
		if len(seen) > most {
			t.Logf("%d worlds at depth %d, %d with a term, in %v; the last level has %d", len(seen), d+1, terms, time.Since(began), len(level))
			return
		}
	}
	t.Logf("%d worlds, depth %d, %d with a term, in %v", len(seen), depth, terms, time.Since(began))
}

// story tells how a world came about.
func story(start *world, origins []origin, id int32) string {
	var path []int16
	for ; origins[id].parent >= 0; id = origins[id].parent {
		path = append(path, origins[id].move)
	}
	var b strings.Builder
	w := *start
	for _, i := range slices.Backward(path) {
		mv := w.moves()[i]
		w.faults -= mv.cost
		mv.do(&w)
		w.show()
		fmt.Fprintf(&b, "%4d  %-40s", w.now, mv.what)
		for j, n := range w.nodes {
			if n.alive {
				fmt.Fprintf(&b, " | %d %v: lead %v %v, place %v %v", j, n.c.Stage, n.c.Lead.Phase, n.c.Lead.Remains.Kind, n.c.Place.Phase, n.c.Place.Remains.Kind)
			}
		}
		fmt.Fprintf(&b, " | store %q %q\n", w.store.rec[0].Signature, w.store.rec[1].Signature)
	}
	return b.String()
}

// Both are small where this runs beside all other tests. "go test ./internal/machine -args
// -machine.worlds=1000000 -machine.walks=100000" takes minutes and some gigabytes.
var (
	manyWorlds = flag.Int("machine.worlds", 20_000, "explore at least so many worlds from each beginning")
	manyWalks  = flag.Uint64("machine.walks", 1000, "make so many long walks at random")
)

func TestNoTwoLead(t *testing.T) {
	for _, leases := range []bool{false, true} {
		for candidates := 1; candidates <= 2; candidates++ {
			t.Run(fmt.Sprintf("leases=%v candidates=%d", leases, candidates), func(t *testing.T) {
				explore(t, newWorld(leases, candidates, 2, nil), 30, *manyWorlds)
			})
		}
	}
}

// walk makes moves at random, and returns what went wrong, if anything did.
func walk(start *world, moves int, rng *rand.Rand) (string, string) {
	w := *start
	var path []string
	for range moves {
		ms := w.moves()
		mv := ms[rng.IntN(len(ms))]
		if rng.IntN(3) == 0 {
			mv = ms[len(ms)-1] // time passes
		}
		if mv.cost > 0 && rng.IntN(4) > 0 || strings.HasSuffix(mv.what, "release") && rng.IntN(8) > 0 {
			continue
		}
		w.faults -= mv.cost
		mv.do(&w)
		w.show()
		path = append(path, fmt.Sprintf("%4d  %s %s", w.now, mv.what, w.line()))
		if wrong := w.check(); wrong != "" {
			return wrong, strings.Join(path, "\n")
		}
	}
	for i := range w.nodes {
		w.nodes[i].cut, w.nodes[i].lag, w.nodes[i].paused = 0, 0, 0
	}
	for range 60 { // no more faults, and everybody stands
		for i := range w.nodes {
			if n := &w.nodes[i]; n.term && n.told {
				w.step(i, machine.Event{Kind: machine.Release, Within: 2})
			} else if !n.alive || n.c.Stage == machine.Done {
				w.stand(i)
			}
		}
		w.show()
		if w.leader() {
			return "", ""
		}
		w.settle()
		w.tick()
		w.show()
		path = append(path, fmt.Sprintf("%4d  healed %s", w.now, w.line()))
		if wrong := w.check(); wrong != "" {
			return wrong, strings.Join(path, "\n")
		}
	}
	return "nobody is elected", strings.Join(path, "\n")
}

// play makes some moves.
func (w *world) play(whats ...string) {
	for _, what := range whats {
		ms := w.moves()
		i := slices.IndexFunc(ms, func(m move) bool { return m.what == what })
		if i < 0 {
			var known []string
			for _, m := range ms {
				known = append(known, m.what)
			}
			panic(fmt.Sprintf("no such move: %q; there are %q%s", what, known, w.line()))
		}
		ms[i].do(w)
		w.show()
	}
}

// settle has all requests carried out.
func (w *world) settle() {
	for range 100 {
		done := true
		for _, mv := range w.moves() {
			if mv.cost == 0 && (strings.Contains(mv.what, "late: ") || strings.HasSuffix(mv.what, " leader") || strings.HasSuffix(mv.what, " heir") || strings.HasSuffix(mv.what, "arrives")) {
				mv.do(w)
				w.show()
				done = false
				break
			}
		}
		if done {
			return
		}
	}
}

func (w *world) leader() bool {
	for _, n := range w.nodes {
		if n.alive && n.term && !n.told {
			return true
		}
	}
	return false
}

func (w *world) line() string {
	var b strings.Builder
	for j, n := range w.nodes {
		if n.alive {
			fmt.Fprintf(&b, " | %d %v: lead %v %v, place %v %v", j, n.c.Stage, n.c.Lead.Phase, n.c.Lead.Remains.Kind, n.c.Place.Phase, n.c.Place.Remains.Kind)
		}
	}
	fmt.Fprintf(&b, " | store %q %q", w.store.rec[0].Signature, w.store.rec[1].Signature)
	return b.String()
}

// order returns what the candidates of a walk have in common.
func order(seed uint64) func(*machine.Config) {
	return func(cfg *machine.Config) {
		cfg.Steps = seed/6%2 == 1
		switch seed / 2 % 3 {
		case 1:
			cfg.Rank = int(cfg.ID[0] - '0')
			cfg.Order = func(_, a, b machine.Contender) bool { return a.Rank > b.Rank }
		case 2:
			cfg.NoHeir = true
		}
	}
}

func TestNoTwoLeadOnLongWalks(t *testing.T) {
	var all stats
	for seed := range *manyWalks {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(seed%2 == 0, 3, 8, order(seed))
		w.runs, w.stats = 20, &all
		wrong, path := walk(w, 300, rng)
		require.Empty(t, wrong, "seed %d\n%s", seed, path)
	}
	t.Logf("%d walks: %+v", *manyWalks, all.counts)
	require.Positive(t, all.handedOver)
	require.Positive(t, all.lost)
}
