package invitation

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// seedVariable repeats one schedule, schedulesVariable says how many to run.
	seedVariable      = "GROUP_SEED"
	schedulesVariable = "GROUP_SCHEDULES"
)

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}

// A course is what came of a random schedule.
type course struct {
	trouble string
	steps   int
	merged  time.Duration // how long it took when the faults were over
	groups  string        // there were then
	enters  int           // entries meanwhile, for each process
}

const ten = 10

// wander has whatever befall ten processes for some minutes, then nothing more, and tells what
// comes of it.
func wander(seed uint64, f flaws) course {
	n := newNetwork(ten, DefaultTiming(), seed, f)
	r := n.random
	n.careful = seed%8 == 0
	n.latency = func() time.Duration {
		if n.loss > 0 && r.IntN(50) == 0 {
			return time.Duration(r.Int64N(int64(15 * time.Second)))
		}
		return time.Millisecond + time.Duration(r.Int64N(int64(30*time.Millisecond)))
	}
	for i := range n.actors {
		n.at(time.Duration(r.Int64N(int64(10*time.Second))), func() { n.begins(i) })
	}
	n.run(time.Second)
	for range 40 + r.IntN(40) {
		n.befall()
		n.run(time.Duration(r.Int64N(int64(8 * time.Second))))
		if n.trouble != "" {
			return course{trouble: n.trouble, steps: n.steps}
		}
	}
	n.calm()
	c := course{groups: n.groups()}
	enters := n.enters
	var ok bool
	if c.merged, ok = n.until(DefaultTiming().Merged(), n.one); !ok && n.trouble == "" {
		n.wrong("after %v there are %s", c.merged, n.groups())
	}
	c.enters = (n.enters - enters) / ten
	enters, leaves := n.enters, n.leaves
	n.run(2 * time.Minute)
	if (!n.one() || n.enters != enters || n.leaves != leaves) && n.trouble == "" {
		n.wrong("a group that has all does not stay")
	}
	c.trouble, c.steps = n.trouble, n.steps
	return c
}

// befall does something to a network.
func (n *network) befall() {
	r := n.random
	i, j := r.IntN(ten), r.IntN(ten)
	switch r.IntN(14) {
	case 0, 1:
		if n.actors[i].alive {
			n.crash(i)
		}
	case 2, 3:
		n.begins(i)
	case 4:
		part := make([]int, ten)
		for k := range part {
			part[k] = r.IntN(2 + r.IntN(2))
		}
		n.parts(part)
	case 5:
		n.deaf[[2]int{i, j}] = true
	case 6, 7:
		clear(n.deaf)
	case 8:
		n.loss = r.Float64() * 0.3
		n.double = r.Float64() * 0.3
	case 9:
		n.loss, n.double = 0, 0
	case 10:
		if !n.asleep[i] && n.actors[i].alive {
			n.asleep[i] = true
			n.at(time.Duration(r.Int64N(int64(20*time.Second))), func() { n.wakes(i) })
		}
	case 11:
		n.drain[i] = time.Duration(r.Int64N(int64(15 * time.Second)))
	case 12:
		n.drain[i] = 0
	case 13:
		if a := &n.actors[i]; a.alive && a.node.stage == running && !n.asleep[i] {
			n.sync(i)
			n.step(i, Event{Kind: Quit})
			n.at(time.Duration(r.Int64N(int64(5*time.Second))), func() {
				if n.actors[i].node.stage == quit && n.actors[i].alive {
					n.crash(i)
				}
			})
		}
	}
}

// calm ends all faults.
func (n *network) calm() {
	clear(n.deaf)
	n.loss, n.double = 0, 0
	for i := range n.actors {
		if a := &n.actors[i]; a.alive && a.node.stage == quit {
			n.crash(i)
		}
		n.wakes(i)
		n.begins(i)
		n.drain[i] = min(n.drain[i], DefaultTiming().Drain/2)
	}
}

func TestInRandomSchedulesPromisesHoldAndTenMerge(t *testing.T) {
	seed := number(t, seedVariable, uint64(time.Now().UnixNano()%1e9))
	schedules := number(t, schedulesVariable, 200)
	if testing.Short() {
		schedules = min(schedules, 30)
	}
	t.Logf("%s=%d %s=%d", seedVariable, seed, schedulesVariable, schedules)
	var next atomic.Uint64
	var all sync.WaitGroup
	var lock sync.Mutex
	steps, longest, parted, enters := 0, course{}, 0, 0
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1); i <= schedules && !t.Failed(); i = next.Add(1) {
				c := wander(seed+i-1, flaws{})
				if c.trouble != "" {
					t.Errorf("%s=%d %s=1: %s", seedVariable, seed+i-1, schedulesVariable, c.trouble)
				}
				lock.Lock()
				steps += c.steps
				if c.merged > longest.merged {
					longest = c
				}
				if c.merged > 0 {
					parted++
				}
				enters = max(enters, c.enters)
				lock.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d steps in %d schedules, of which %d ended in parts; these merged within %v, promised are %v (%s); at most %d groups entered by each until then, about",
		steps, schedules, parted, longest.merged, DefaultTiming().Merged(), longest.groups, enters)
	require.Greater(t, uint64(steps), schedules*1000)
	require.Positive(t, parted)
}
