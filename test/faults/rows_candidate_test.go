//go:build linux

package faults

import (
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// candidateRows are what befalls a candidate's process.
func candidateRows() []row {
	return []row{
		{
			number: 1, fault: "leader killed", short: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				for range 2 {
					first := s.alive()
					s.due(first.Who, s.crash(), "SIGKILL")
					s.kill(first.Who)
					s.leader(first.Who)
					s.again(first.Who)
				}
			},
		},
		{
			number: 4, fault: "leader stopped for 3 TTL", short: true,
			must: []oracle.Rule{oracle.LeaderInTime, oracle.SleepersNotice},
			play: func(s *stage) {
				first := s.alive()
				s.tell(first.Who, "freeze work")
				s.due(first.Who, s.takeover(), "SIGSTOP")
				s.asleep(first.Who)
				s.leader(first.Who)
				s.pass(3*s.ttl - s.takeover())
				s.wake(first.Who)
				s.awaitOf(first.Who, history.Ended)
				s.pass(500 * time.Millisecond)
			},
		},
	}
}
