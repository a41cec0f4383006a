//go:build linux

package faults

import (
	"github.com/electkv/election/internal/oracle"
)

// replyRows lose the answer to exactly one request that was carried out.
func replyRows() []row {
	return []row{
		{
			number: 24, fault: "answer to a create lost", candidates: 2, short: true, part: withoutHeir,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				next := s.others(first.Who)[0]
				s.fault("the answer to the next create is lost")
				s.tell(next, "fault create dropreply 1")
				s.pass(s.ttl / 5) // it has to hear that before it creates
				// The candidate waits for the answer as long as a request may take, and
				// then finds its own record.
				s.due(first.Who, s.release()+s.ttl/3, "its end")
				s.tell(first.Who, "close")
				s.unanswered(next, "create")
				s.leader(first.Who)
				s.pass(s.ttl)
			},
		},
		{
			number: 25, fault: "answer to a refresh lost", times: 3,
			must: []oracle.Rule{oracle.LeaderKept},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the answer to the next refresh is lost")
				s.keep(first, 2*s.ttl)
				s.tell(first.Who, "fault refresh dropreply 1")
				s.unanswered(first.Who, "refresh")
				s.pass(2 * s.ttl)
			},
		},
		{
			number: 26, fault: "answer to a delete lost", times: 3, part: withoutHeir,
			must: []oracle.Rule{oracle.LeaderInTime}, play: answerLost("delete"),
		},
		{
			number: 26, letter: "b", fault: "delete never arrives", part: withoutHeir,
			must: []oracle.Rule{oracle.LeaderInTime}, play: neverArrives("delete"),
		},
		{
			number: 26, letter: "c", fault: "answer to a hand-over lost", times: 3, short: true, only: inOneStep,
			must: []oracle.Rule{oracle.LeaderInTime}, play: answerLost("handover"),
		},
		{
			number: 26, letter: "d", fault: "hand-over never arrives", only: inOneStep,
			must: []oracle.Rule{oracle.LeaderInTime}, play: neverArrives("handover"),
		},
	}
}

// answerLost closes the leader, and loses the answer to how it gives the safe away.
func answerLost(op string) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.pass(s.ttl / 3) // for somebody to be heir
		s.fault("the answer to the next " + op + " is lost")
		s.tell(first.Who, "fault "+op+" dropreply 1")
		s.due(first.Who, s.release(), "its end")
		s.tell(first.Who, "close")
		second := s.leader(first.Who)
		s.keep(second, s.ttl/3)
		s.unanswered(first.Who, op)
		s.pass(s.ttl)
	}
}

// neverArrives closes the leader, which cannot give the safe away.
func neverArrives(op string) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.pass(s.ttl / 3) // for somebody to be heir
		s.fault("each " + op + " is lost")
		s.tell(first.Who, "fault "+op+" droprequest")
		s.due(first.Who, s.takeover(), "its end")
		s.tell(first.Who, "close")
		s.unanswered(first.Who, op)
		s.leader(first.Who)
	}
}

// withoutHeir has candidates stand without one.
func withoutHeir(p *part) { p.NoHeir = true }
