//go:build unix

package linear_test

import (
	"math/rand/v2"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// A fault is what can go wrong, until it is healed.
type fault struct {
	name string
	// strike makes it go wrong, and returns what ends it.
	strike func(random *rand.Rand) (heal func())
	// hold is how long it lasts at most.
	hold time.Duration
}

// torment lets one fault after the other strike until finished is closed, each
// for some of the operations and with some in peace before it. It runs in the
// test's own goroutine, which a server that does not come back ends.
func (tr *trial) torment(finished <-chan struct{}) {
	random := rand.New(rand.NewPCG(tr.seed, 100))
	share := func() int { return 15 + random.IntN(40) }
	// Each fault gets its turn; which comes when is drawn.
	var turn []int
	for last, before := "", int64(0); ; {
		peace := tr.gate.open(share())
		select {
		case <-peace:
		case <-finished:
		}
		if last != "" && tr.unknown.Load() > before {
			tr.harmed[last]++
		}
		select {
		case <-finished:
			return
		default:
		}
		if len(turn) == 0 {
			turn = random.Perm(len(tr.faults))
		}
		f := tr.faults[turn[0]]
		turn = turn[1:]
		last, before = f.name, tr.unknown.Load()
		tr.struck[f.name]++
		heal := f.strike(random)
		enough := tr.gate.open(share())
		if random.IntN(3) == 0 {
			enough = nil // it lasts, whoever has nothing to do
		}
		await(enough, f.hold/2+time.Duration(random.Int64N(int64(f.hold/2))))
		heal()
	}
}

// await waits for the event, but no longer than for d.
func await(event <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
	}
}

// A wire is what stands between one client and the servers.
type wire []*testenv.Proxy

// wireFaults strike three of the clients or more.
func wireFaults(wires []wire) []fault {
	on := func(name string, strike func(*rand.Rand, *testenv.Proxy)) fault {
		return fault{name: name, hold: 600 * time.Millisecond, strike: func(random *rand.Rand) func() {
			var struck []*testenv.Proxy
			for _, i := range random.Perm(len(wires))[:3+random.IntN(len(wires)-2)] {
				struck = append(struck, wires[i]...)
			}
			for _, p := range struck {
				strike(random, p)
			}
			return func() {
				for _, p := range struck {
					p.Heal()
				}
			}
		}}
	}
	return []fault{
		on("cut", func(_ *rand.Rand, p *testenv.Proxy) { p.Cut() }),
		on("black hole", func(_ *rand.Rand, p *testenv.Proxy) { p.BlackHole() }),
		on("replies dropped", func(_ *rand.Rand, p *testenv.Proxy) { p.DropReplies() }),
		on("requests dropped", func(_ *rand.Rand, p *testenv.Proxy) { p.DropRequests() }),
		on("delay", func(random *rand.Rand, p *testenv.Proxy) {
			p.Delay(time.Duration(5+random.IntN(300)) * time.Millisecond)
		}),
	}
}

// serverFaults strike the server that choose names.
func serverFaults(who string, hold time.Duration, choose func(*rand.Rand) *testenv.Server) []fault {
	return []fault{
		{name: who + " paused", hold: hold, strike: func(random *rand.Rand) func() {
			s := choose(random)
			s.Pause()
			return s.Continue
		}},
		{name: who + " killed", hold: hold, strike: func(random *rand.Rand) func() {
			s := choose(random)
			s.Kill()
			return s.Restart
		}},
	}
}

// one chooses among the servers.
func one(servers ...*testenv.Server) func(*rand.Rand) *testenv.Server {
	return func(random *rand.Rand) *testenv.Server { return servers[random.IntN(len(servers))] }
}

// leader chooses the cluster's leader.
func leader(c *testenv.Cluster) func(*rand.Rand) *testenv.Server {
	return func(*rand.Rand) *testenv.Server { return c.Leader() }
}

// clusterFaults strike one node, which leaves a majority.
func clusterFaults(c *testenv.Cluster) []fault {
	const hold = 2 * time.Second // time to elect another leader
	return append(serverFaults("leader", hold, leader(c)), serverFaults("node", hold, one(c.Nodes...))...)
}
