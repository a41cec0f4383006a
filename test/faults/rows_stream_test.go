//go:build linux

package faults

import (
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// streamRows spoil the streams between candidates and servers.
func streamRows() []row {
	return []row{
		{
			number: 23, letter: "a", fault: "connections reset again and again", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: storm("is reset again and again", (*testenv.Proxy).Reset, 0),
		},
		{
			// What is sent is carried out all the same.
			number: 23, letter: "b", fault: "connections half closed", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: storm("is half closed", (*testenv.Proxy).HalfClose, 1),
		},
		{
			number: 23, letter: "c", fault: "streams in slices", only: overNetwork, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				s.links("arrives in slices", func(p *testenv.Proxy) { p.Trickle(50, 5*time.Millisecond) })
				s.slowAnswer(first.Who, 20*time.Millisecond)
				s.pass(2 * s.ttl)
				s.due(first.Who, s.release()+s.ttl/3, "its end")
				s.tell(first.Who, "close")
				s.leader(first.Who)
			},
		},
	}
}

// storm breaks all streams for as long as the leader can bear it, and then for
// longer. The record may live for some TTLs longer than if the leader had
// vanished.
func storm(text string, spoil func(*testenv.Proxy), ttls int) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.links(text, spoil)
		s.unanswered(first.Who, "")
		s.heal()
		first = s.alive()
		s.links(text, spoil)
		s.unanswered(first.Who, "")
		s.awaitOf(first.Who, history.Ended)
		s.pass(s.ttl)
		s.due("", s.recovery()+time.Duration(ttls)*s.ttl, "the streams flow again")
		s.heal()
		s.leader()
		s.pass(s.ttl)
	}
}

// unanswered waits until a request of a candidate has come to nothing: one for
// op, if given.
func (s *stage) unanswered(who, op string) {
	s.t.Helper()
	s.await("a request of "+who+" that fails", func(e history.Event) bool {
		return e.Who == who && e.Kind == history.Answered && e.Result == history.Unknown && (op == "" || op == e.Op)
	})
}

// slowAnswer waits until a candidate had to wait so long for an answer.
func (s *stage) slowAnswer(who string, least time.Duration) {
	s.t.Helper()
	sent := map[uint64]time.Duration{}
	s.await("an answer that takes "+least.String(), func(e history.Event) bool {
		if e.Who == who && e.Kind == history.Sent {
			sent[e.Call] = e.At
		}
		at, ok := sent[e.Call]
		return ok && e.Who == who && e.Kind == history.Answered && e.At-at >= least
	})
}
