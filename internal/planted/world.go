package planted

import (
	"time"

	"github.com/electkv/election/internal/sim"
)

// What planted bugs need of the world.

// slowLeaders gives everybody a clock of rate 0.9, and the store a true one.
func slowLeaders(s *sim.Schedule) {
	for i := range s.Nodes {
		s.Nodes[i].Rate = -100_000
	}
	s.Store.Rate = 0
}

// plain leaves out what takes an engine that recognises its records, one whose
// contexts ask the clock, and one that waits in line or for a hand-over.
func plainWorld(s *sim.Schedule) {
	s.Store.Lines, s.Succession = false, sim.Succession{}
	for i := range s.Nodes {
		s.Nodes[i].Asks = sim.AskBoth
	}
	kept := []sim.Fault{}
	for _, f := range s.Faults {
		if f.Kind != sim.LoseReply {
			kept = append(kept, f)
		}
	}
	s.Faults = kept
}

// lostCreates loses the answer to a create of each candidate after all other
// faults are over, again and again.
func lostCreates(s *sim.Schedule) {
	end := time.Duration(0)
	for _, f := range s.Faults {
		end = max(end, f.End())
	}
	for i := range s.Nodes {
		s.Nodes[i].Dwell = s.TTL
		s.Faults = append(s.Faults, sim.Fault{Kind: sim.LoseReply, Op: "create", Who: i, Window: sim.Window{From: end + s.Bound(), To: s.Horizon}})
	}
}

// deaf takes the clocks away that count suspends.
func deaf(s *sim.Schedule) {
	for i := range s.Nodes {
		s.Nodes[i].Deaf = true
	}
}

func unfenced(s *sim.Schedule) { s.Unfenced = true }
