package simulation

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/electkv/election/internal/history"
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

// drawSchedule draws a schedule, in which observers judge which records have expired
// now and then.
func drawSchedule(t *rapid.T) sim.Schedule {
	s := DrawStored(t)
	if part(t, "expiry", 8) > 4 {
		drawObserved(t, &s)
	}
	drawLeaves(t, &s)
	return s
}

// drawLeaves has candidates leave now and then while a request is on its way. It comes
// after all else, as drawLine does.
func drawLeaves(t *rapid.T, s *sim.Schedule) {
	last := s.Horizon - 2*s.Bound()
	for range part(t, "leaves", 4) {
		from := between(t, "from", 0, last-4*s.TTL)
		s.Faults = append(s.Faults, sim.Fault{
			Kind: sim.Leave, Who: part(t, "who", 8) % len(s.Nodes),
			Window: sim.Window{From: from, To: from + 1 + between(t, "lasts", 0, 8*s.TTL)},
			Op:     rapid.SampledFrom([]string{"create", "swap", "join", "get"}).Draw(t, "op"),
		})
	}
}

// DrawStored draws a store, a few candidates and a dozen faults.
func DrawStored(t *rapid.T) sim.Schedule {
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
	if part(t, "lines", 2) == 1 {
		drawLine(t, &s, last)
	}
	if part(t, "succession", 8) > 4 {
		drawSuccession(t, &s, last)
	}
	return settle(s)
}

// drawObserved has observers judge, by clocks of which some are set forward. It comes
// after all else, as drawLine does.
func drawObserved(t *rapid.T, s *sim.Schedule) {
	Observed(s)
	last := s.Horizon - 2*s.Bound()
	for i := range s.Nodes {
		if part(t, "leaps", 4) == 3 {
			s.Nodes[i].Leap = sim.Window{From: between(t, "from", 0, last), To: between(t, "by", s.TTL/4, 4*s.TTL)}
		}
	}
}

// Observed has observers judge. There are no lines, nor leases, where they do.
func Observed(s *sim.Schedule) {
	s.Store.Expiry, s.Store.Lines, s.Store.Leases, s.Store.Lazy = sim.ByObserver, false, false, 0
	*s = settle(*s)
}

// simNames are whom a leader may be told to hand over to. The last never stands,
// and others may not.
var simNames = []string{"a", "b", "c", "d", "x"}

// drawSuccession has candidates succeed each other in some order, and leaders told
// to make room. It comes after all else, as drawLine does.
func drawSuccession(t *rapid.T, s *sim.Schedule, last time.Duration) {
	s.Order = rapid.SampledFrom([]sim.Order{sim.FirstCome, sim.ByRank, sim.Ring, sim.ByList}).Draw(t, "order")
	s.Stability = rapid.SampledFrom([]time.Duration{0, s.TTL / 2, s.TTL, 2 * s.TTL}).Draw(t, "stability")
	s.Store.Leases, s.Store.Whole = part(t, "leases", 2) == 1, part(t, "whole", 2) == 1
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Rank = rapid.SampledFrom([]int{0, 1, 2, 2, 7}).Draw(t, "rank")
		n.Plain = part(t, "plain", 8) == 7
		n.Heirs = drawNames(t)
	}
	s.Nodes[0].Rank = max(s.Nodes[0].Rank, 0)
	switch part(t, "world", 16) {
	case 15, 14:
		drawPeace(t, s)
		return
	case 13, 12:
		drawFlapping(t, s)
		return
	}
	s.MaxTerm = rapid.SampledFrom([]time.Duration{0, 0, 0, s.TTL, 3 * s.TTL, 10 * s.TTL}).Draw(t, "max term")
	for range part(t, "acts", 8) {
		s.Acts = append(s.Acts, sim.Act{
			Verb: rapid.SampledFrom([]sim.Verb{sim.Transfer, sim.Transfer, sim.SetHeirs, sim.AskResign, sim.AskTransfer}).Draw(t, "verb"),
			At:   between(t, "at", 0, last),
			IDs:  append(drawNames(t), rapid.SampledFrom(simNames).Draw(t, "to")),
		})
	}
	for range part(t, "beside", 4) { // at the heir's safe
		f := drawFault(t, *s, last)
		f.Kind, f.Who, f.Safe = rapid.SampledFrom([]sim.Kind{sim.Foreign, sim.Remove}).Draw(t, "what"), sim.Everybody, history.Heir
		f.Size, f.Chance, f.Op = 0, 0, ""
		s.Faults = append(s.Faults, f)
	}
}

// drawNames draws a list of up to three IDs.
func drawNames(t *rapid.T) (names []string) {
	for range part(t, "names", 4) {
		if name := rapid.SampledFrom(simNames).Draw(t, "name"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// drawPeace leaves all faults out, and has candidates come one by one.
func drawPeace(t *rapid.T, s *sim.Schedule) {
	s.Faults = nil
	if part(t, "by rank", 2) == 1 {
		s.Order = sim.ByRank
	}
	for i := range s.Nodes {
		s.Nodes[i].Dwell, s.Nodes[i].Plain = 0, false
		if i > 0 {
			s.Nodes[i].Joins = between(t, "joins", 0, 20*s.TTL)
		}
	}
}

// drawFlapping has the candidate with the highest rank crash again and again, and
// nothing else go wrong.
func drawFlapping(t *rapid.T, s *sim.Schedule) {
	s.Faults, s.Order, s.Stability = nil, sim.ByRank, s.TTL*time.Duration(1+part(t, "stable", 4))
	if len(s.Nodes) == 1 {
		s.Nodes = append(s.Nodes, sim.NodePlan{})
	}
	for i := range s.Nodes {
		s.Nodes[i].Dwell, s.Nodes[i].Plain, s.Nodes[i].Lag = 0, false, 0
	}
	s.Nodes[0].Rank = 8
	for at := s.TTL; at < s.Horizon-2*s.Bound(); {
		at += between(t, "stays", s.TTL/4, s.Stability*7/4)
		f := sim.Fault{Kind: sim.Crash, Window: sim.Window{From: at, To: at + between(t, "lasts", s.TTL/2, 3*s.TTL/2)}}
		s.Faults, at = append(s.Faults, f), f.To
	}
	// and then it is held back for a while yet
	s.Horizon = s.Faults[len(s.Faults)-1].To + s.Stability*7/4
}

// drawLine has candidates wait in line, among old clients, and adds faults that
// are of interest there. It comes last: without lines a seed's schedule is what it
// was before there were any.
func drawLine(t *rapid.T, s *sim.Schedule, last time.Duration) {
	s.Store.Lines = true
	for range part(t, "clients", 8) {
		from := between(t, "joins", 0, last-4*s.TTL)
		s.Faults = append(s.Faults, sim.Fault{
			Kind: sim.Foreign, Who: sim.Everybody,
			Window: sim.Window{From: from, To: from + 1 + between(t, "holds", 0, 6*s.TTL)},
		})
	}
	for range part(t, "calls", 8) {
		f := drawFault(t, *s, last)
		f.Kind, f.Who, f.Chance = rapid.SampledFrom([]sim.Kind{sim.LoseReply, sim.PauseBefore, sim.PauseAfter}).Draw(t, "what"), part(t, "whose", 4)%len(s.Nodes), 0
		f.Size, f.Op = 0, rapid.SampledFrom([]string{"stay", "join"}).Draw(t, "call")
		if f.Kind != sim.LoseReply {
			f.Size = between(t, "pause", 0, 2*s.TTL)
		}
		s.Faults = append(s.Faults, f)
	}
	if part(t, "slow to leave", 4) == 3 { // what it asks for because it is ill comes when it is well
		from, who := between(t, "from", 0, last-4*s.TTL), part(t, "whose", 4)%len(s.Nodes)
		s.Faults = append(s.Faults,
			sim.Fault{Kind: sim.Ill, Who: who, Window: sim.Window{From: from, To: from + 1 + between(t, "ill", 0, s.TTL)}},
			sim.Fault{Kind: sim.Delay, Who: who, Window: sim.Window{From: from, To: from + 1 + between(t, "slow", 0, 3*s.TTL)}, Size: s.TTL})
	}
	if part(t, "one way", 4) == 3 { // for so long that others must have their turn
		from := between(t, "from", 0, last/2)
		s.Faults = append(s.Faults, sim.Fault{
			Kind: sim.CutReplies, Who: part(t, "whose", 4) % len(s.Nodes),
			Window: sim.Window{From: from, To: from + 1 + between(t, "lasts", 0, last-from-4*s.TTL)},
		})
	}
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
	case sim.CutRequests, sim.CutReplies, sim.Freeze, sim.Suspend, sim.Away, sim.Crash, sim.Leave:
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
			clash = clash || clashes(s, f, other) && f.From <= other.To && other.From <= f.To
		}
		if !clash {
			kept = append(kept, f)
		}
	}
	s.Faults = kept
	return s
}

// clashes reports whether one of two faults has to be over before the other. Any
// number of old clients can be in a line.
func clashes(s sim.Schedule, f, other sim.Fault) bool {
	if s.Store.Lines && f.Kind == sim.Foreign {
		return false
	}
	return group(f.Kind) == group(other.Kind) && f.Who == other.Who
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
