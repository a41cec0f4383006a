//go:build linux

package faults

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// watchRows are watches that are dead without a sign, while everything else
// works: only a look now and then finds out.
func watchRows() []row {
	const backstop = 2 * time.Second
	return []row{
		{
			number: 43, letter: "e", fault: "answers to watches are lost, and no others", own: true,
			only: on("it is about etcd's streams", "etcd"),
			must: []oracle.Rule{oracle.LeaderInTime, oracle.LeaderKept}, times: 2,
			part: func(p *part) { p.Backstop = backstop },
			servers: func(t testing.TB, c column) *servers {
				servers := c.start(t)
				servers.muter = newMuter(t, servers.addrs[0])
				servers.addrs = []string{servers.muter.addr}
				servers.all = servers.addrs
				return servers
			},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, s.ttl)
				s.fault("nothing is heard on watches")
				s.muter.mute.Store(true)
				s.pass(s.ttl)
				s.due(first.Who, s.takeover()+5*backstop/4, "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
				require.Positive(s.t, s.muter.lost.Load(), "messages lost")
				s.muter.mute.Store(false)
				s.healed("watches are heard again")
			},
		},
		{
			number: 43, letter: "k", fault: "answers to blocking queries are lost, and no others",
			only: on("it is about Consul's blocking queries", "consul", "consul3"),
			must: []oracle.Rule{oracle.LeaderInTime, oracle.LeaderKept}, times: 3,
			part: both(withoutHeir, func(p *part) { p.Backstop = backstop }), // an heir's refreshes look at the leader
			play: func(s *stage) {
				killed, next := s.deafQueries(backstop)
				require.Greater(s.t, next.Begin-killed, s.takeover(), "the watches were not dead")
			},
			// Who judges looks once more, and finds what its watch has not told.
			observed: func(r *row) {
				r.play = func(s *stage) {
					_, next := s.deafQueries(backstop)
					s.hears(next.Who, "does not tell of what is there")
				}
			},
		},
	}
}

// deafQueries has no blocking query answered, and the leader killed.
func (s *stage) deafQueries(backstop time.Duration) (killed time.Duration, next history.Stretch) {
	s.t.Helper()
	first := s.alive()
	s.keep(first, s.ttl)
	s.links("is not answered to blocking queries", func(p *testenv.Proxy) {
		p.Affect(func(c testenv.Connection) bool { return bytes.Contains(c.Last, []byte("index=")) })
		p.DropReplies()
	})
	s.pass(s.ttl)
	killed = boottime.Now()
	// A query is given up ten seconds after its answer was due.
	s.due(first.Who, s.takeover()+backstop+10*time.Second, "SIGKILL")
	s.kill(first.Who)
	return killed, s.leader(first.Who)
}
