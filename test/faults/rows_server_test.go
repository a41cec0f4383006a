//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// serverRows are what befalls the store's servers.
func serverRows() []row {
	return []row{
		{
			number: 9, fault: "server killed and restarted", own: true, only: allServers, short: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				s.alive()
				s.fault("the server is killed")
				s.killServers()
				s.restartServers()
				s.healed("it serves again")
				s.due("", s.recovery(), "the server's restart")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 10, fault: "server down for 3 TTL", own: true, only: allServers,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the server is killed")
				s.killServers()
				s.awaitOf(first.Who, history.Ended)
				s.pass(2 * s.ttl)
				s.restartServers()
				s.healed("it serves again")
				s.due("", s.recovery(), "the server's return")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 11, letter: "a", fault: "server's data wiped within a term", own: true, times: 6,
			only: and(oneServer, keepsNoTable, on("it loses its log as well; see 11c", "redis")),
			red:  []oracle.Rule{oracle.OneLeader}, without: "a quarantine",
			play: wipe(0),
		},
		{
			number: 11, letter: "b", fault: "server's data wiped within a term, quarantine", own: true, times: 3,
			only: and(oneServer, keepsNoTable, on("it has no quarantine; see 11c", "redis")),
			must: []oracle.Rule{oracle.LeaderInTime}, with: "a quarantine",
			part: func(p *part) { p.Quarantine = p.TTL },
			play: wipe(0),
		},
		{
			number: 11, letter: "c", fault: "server's data wiped within a term", own: true, times: 6,
			only: and(oneServer, keepsNoTable, on("its tokens come from the clock; see 11a", "etcd", "consul")),
			red:  []oracle.Rule{oracle.OneLeader, oracle.TokensGrow}, without: "a store that keeps its data",
			play: wipe(0),
		},
		{
			number: 11, letter: "d", fault: "server's data wiped, and a TTL passed", own: true,
			only: and(oneServer, keepsNoTable, on("its tokens come from the clock; see 11a", "etcd", "consul")),
			red:  []oracle.Rule{oracle.TokensGrow}, without: "a store that keeps its data",
			play: wipe(1),
		},
		{
			number: 12, fault: "server stopped for 3 TTL", own: true, only: allServers,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the server is stopped")
				for _, node := range s.nodes {
					node.Pause()
				}
				s.awaitOf(first.Who, history.Ended)
				s.pass(2 * s.ttl)
				s.due("", s.recovery(), "the server was woken")
				for _, node := range s.nodes {
					node.Continue()
				}
				s.healed("it goes on")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 13, letter: "a", fault: "store's leader killed", own: true, only: and(severalServers, withLeader("14a")), times: 2, short: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				s.alive()
				node := s.servers.leader(s.name)
				s.fault("the store's leader is killed")
				s.due("", s.recovery(), "the store's leader was killed")
				node.Kill()
				s.leader()
				s.pass(s.ttl)
				node.Restart()
				s.healed("it serves again")
				s.pass(s.ttl)
			},
		},
		{
			number: 13, letter: "b", fault: "store's leader stopped for 3 TTL", own: true,
			only: and(severalServers, withLeader("12p"), on("what etcd's leader does when it is woken is a row of its own; see 13f", "consul3")),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: stopLeader,
		},
		{
			number: 14, letter: "a", fault: "minority of servers lost", own: true, only: severalServers, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				node := s.spare(first)
				s.fault("one server is killed")
				s.keep(first, 2*s.ttl)
				node.Kill()
				s.pass(2 * s.ttl)
				s.due(first.Who, s.crash(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
				node.Restart()
				s.healed("it serves again")
			},
		},
		{
			number: 14, letter: "b", fault: "majority of servers lost", own: true, only: severalServers,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				lost := s.nodes[:2]
				s.fault("two servers of three are killed")
				for _, node := range lost {
					node.Kill()
				}
				s.awaitOf(first.Who, history.Ended)
				s.pass(2 * s.ttl)
				for _, node := range lost {
					node.Restart()
				}
				s.healed("they serve again")
				s.due("", s.recovery(), "the servers' return")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 32, fault: "record deleted by an operator", times: 2, short: true, part: quietly,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				for range 3 {
					first := s.alive()
					s.interfered(s.notice(), "the record is deleted")
					s.erase()
					s.awaitOf(first.Who, history.Ended)
					// Redis pushes no news of that, and is looked at once a second.
					s.due("", time.Second+s.release(), "the record was deleted")
					s.leader()
				}
			},
		},
	}
}

// killServers kills all that keep the data.
func (s *stage) killServers() {
	s.t.Helper()
	for _, node := range s.nodes {
		node.Kill()
	}
}

// restartServers starts them again.
func (s *stage) restartServers() {
	s.t.Helper()
	for _, node := range s.nodes {
		node.Restart()
	}
}

// stopLeader stops the store's leader for so long that another is chosen and all
// that the first has granted is over by its clock, and wakes it.
func stopLeader(s *stage) {
	s.alive()
	node := s.servers.leader(s.name)
	s.fault("the store's leader is stopped")
	s.due("", s.recovery(), "the store's leader was stopped")
	node.Pause()
	s.pass(3 * s.ttl)
	node.Continue()
	s.healed("it goes on, and learns of the next one")
	s.leader()
	s.pass(2 * s.ttl)
}

// recovery is within what time there is a leader again after the store has come
// back: a record that was there may live anew, and the clients have to find the
// servers, which they try at growing intervals. Members that were restarted wait.
func (s *stage) recovery() time.Duration { return s.takeover() + 3*time.Second + s.silence() }

// wipe loses the server's data while the leader does not hear of it, and keeps
// the server away for some TTLs. The next to stand finds the safe vacant.
func wipe(ttls int) func(*stage) {
	return func(s *stage) {
		first := s.aged()
		s.blackHole(first.Who)
		s.fault("the server's data is lost")
		s.nodes[0].Kill()
		s.nodes[0].Wipe()
		s.pass(time.Duration(ttls) * s.ttl)
		s.nodes[0].Restart()
		s.healed("it serves again, without them")
		s.due(first.Who, s.recovery()+s.director().Quarantine, "the server's return")
		s.enter("dora")
		s.leader(first.Who)
		s.awaitOf(first.Who, history.Ended)
		s.heal(first.Who)
		s.pass(s.ttl)
	}
}

// aged returns a leader whose token an empty log would not come to soon, where
// tokens are indexes of a log.
func (s *stage) aged() history.Stretch {
	s.t.Helper()
	first := s.alive()
	for i := range 50 {
		var err error
		switch key := fmt.Sprint(s.name, "-", i); s.col.kind {
		case kindEtcd:
			_, err = s.etcd().Put(s.t.Context(), key, "")
		case kindConsul:
			_, err = s.consul().KV().Put(&api.KVPair{Key: key}, nil)
		default:
			return first
		}
		require.NoError(s.t, err)
	}
	s.tell(first.Who, "close")
	s.awaitOf(first.Who, history.Left)
	return s.alive()
}

// spare returns a server that a leader can do without: it does not lead, and the
// candidate is not one that knows no other.
func (s *stage) spare(leader history.Stretch) *testenv.Server {
	s.t.Helper()
	for _, node := range s.servers.others(s.servers.leader(s.name)) {
		addrs := s.actor(leader.Who).part.Addrs
		if len(addrs) > 1 || addrs[0] != node.Addr() {
			return node
		}
	}
	require.Fail(s.t, "no server to spare")
	return nil
}
