package election_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/electkv/election/internal/sim"
)

// What schedules are drawn from. Shrinking moves to what comes first.
var (
	simTTLs   = []time.Duration{10 * time.Second, 15 * time.Second, 3 * time.Second, time.Second}
	simStyles = []sim.Style{sim.ByRun, sim.ByRun, sim.ByCallbacks, sim.ByCampaign}
	simKinds  = []sim.Kind{
		sim.Delay, sim.Lose, sim.Duplicate, sim.CutRequests, sim.CutReplies,
		sim.Freeze, sim.Suspend, sim.PauseBefore, sim.PauseAfter, sim.LoseReply,
		sim.Away, sim.Crash, sim.Ill, sim.Restart, sim.Anew, sim.Foreign, sim.Remove,
	}
	simOps = []string{"refresh", "create", "delete", "get", "swap"}
)

// simRho is how far any clock's rate is from true, in millionths: the engine's
// own assumption.
const simRho = 10_000

// drawSchedule draws a store, a few candidates and a dozen faults.
func drawSchedule(t *rapid.T) sim.Schedule {
	ttl := rapid.SampledFrom(simTTLs).Draw(t, "ttl")
	s := sim.Schedule{
		Seed:    rapid.Uint64().Draw(t, "seed"),
		TTL:     ttl,
		Horizon: 70 * ttl,
		Delay:   between(t, "delay", 0, ttl/100) + 1,
		Store: sim.StorePlan{
			Rate: rate(t),
			Lazy: rapid.SampledFrom([]time.Duration{0, ttl / 50, ttl}).Draw(t, "lazy"),
		},
	}
	switch part(t, "grant", 4) {
	case 3:
		s.Store.Least = ttl * 3 / 2
	case 2: // no store should; what the engine trusts is what was granted all the same
		s.Store.Most = ttl * 3 / 4
	}
	for range 1 + part(t, "nodes", 4) {
		s.Nodes = append(s.Nodes, sim.NodePlan{
			Style: rapid.SampledFrom(simStyles).Draw(t, "style"),
			Asks:  rapid.SampledFrom([]sim.Asks{sim.AskBoth, sim.AskContext, sim.AskTerm}).Draw(t, "asks"),
			Rate:  rate(t),
			Dwell: rapid.SampledFrom([]time.Duration{0, ttl / 2, ttl, 4 * ttl}).Draw(t, "dwell"),
			Lag:   rapid.SampledFrom([]time.Duration{0, ttl / 100, ttl / 2, 2 * ttl}).Draw(t, "lag"),
		})
	}
	last := s.Horizon - 2*s.Bound()
	for range part(t, "faults", 32) {
		s.Faults = append(s.Faults, drawFault(t, s, last))
	}
	return settle(s)
}

func drawFault(t *rapid.T, s sim.Schedule, last time.Duration) sim.Fault {
	from := between(t, "from", 0, last-4*s.TTL)
	f := sim.Fault{
		Kind:   simKinds[part(t, "kind", 32)*len(simKinds)/32],
		Who:    part(t, "who", 8) % len(s.Nodes),
		Window: sim.Window{From: from, To: from + 1 + between(t, "lasts", 0, 3*s.TTL)},
	}
	switch f.Kind {
	case sim.Delay:
		f.Size = between(t, "size", 0, s.TTL)
	case sim.Lose:
		f.Chance = rapid.IntRange(5, 60).Draw(t, "chance")
	case sim.Duplicate:
		f.Size, f.Chance = between(t, "size", 0, 2*s.TTL), rapid.IntRange(10, 100).Draw(t, "chance")
	case sim.PauseBefore, sim.PauseAfter:
		f.Size, f.Op = between(t, "size", 0, 2*s.TTL), rapid.SampledFrom(simOps).Draw(t, "op")
	case sim.Ill:
		switch part(t, "illness", 4) {
		case 3:
			f.Op, f.Size = sim.Hangs, s.TTL/2
		case 2:
			f.Op, f.Size = sim.Lags, between(t, "size", s.TTL/2, s.TTL)
		}
	case sim.LoseReply:
		f.Op = rapid.SampledFrom(simOps).Draw(t, "op")
	case sim.Restart, sim.Anew, sim.Foreign, sim.Remove:
		f.Who = sim.Everybody
	case sim.CutRequests, sim.CutReplies, sim.Freeze, sim.Suspend, sim.Away, sim.Crash:
	}
	if f.Who >= 0 && part(t, "leader", 2) == 1 {
		f.Who = sim.Leader
	}
	if (f.Kind == sim.Delay || f.Kind == sim.Lose || f.Kind == sim.CutReplies) && part(t, "all", 4) == 3 {
		f.Who = sim.Everybody
	}
	return f
}

// settle leaves out what a world cannot do twice at once: suspend a host that is
// suspended, stop a store that is down.
func settle(s sim.Schedule) sim.Schedule {
	kept := []sim.Fault{}
	for _, f := range s.Faults {
		clash := false
		for _, other := range kept {
			clash = clash || group(f.Kind) == group(other.Kind) && f.Who == other.Who && f.From <= other.To && other.From <= f.To
		}
		if !clash {
			kept = append(kept, f)
		}
	}
	s.Faults = kept
	return s
}

func group(k sim.Kind) sim.Kind {
	switch k {
	case sim.Anew:
		return sim.Restart
	case sim.Suspend:
		return sim.Freeze
	case sim.Away:
		return sim.Crash
	}
	return k
}

func rate(t *rapid.T) sim.PPM {
	return sim.PPM(rapid.SampledFrom([]int{0, -simRho, simRho, -simRho / 3, simRho / 7}).Draw(t, "rate"))
}

// between draws a duration, all of them alike: rapid's own numbers prefer what is
// small, which is good for shrinking and makes dull faults.
func between(t *rapid.T, label string, from, to time.Duration) time.Duration {
	const parts = 1 << 12
	return from + max(to-from, 0)/parts*time.Duration(part(t, label, parts))
}

// part draws one of [0, n), for a power of two.
func part(t *rapid.T, label string, n int) int {
	x := 0
	for ; n > 1; n /= 2 {
		x *= 2
		if rapid.Bool().Draw(t, label) {
			x++
		}
	}
	return x
}
