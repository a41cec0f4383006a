//go:build linux

package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// peerRows are about members that keep safes together.
func peerRows() []row {
	rows := append(restartRows(), rateRows()...)
	rows = append(rows, doubleRows()...)
	rows = append(rows,
		row{
			number: 12, letter: "p", fault: "members stopped one after the other, each for a TTL", own: true, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 3*s.ttl)
				for _, node := range s.nodes {
					s.fault("a member is stopped")
					node.Pause()
					s.pass(s.ttl)
					node.Continue()
					s.healed("it goes on")
					s.pass(2 * time.Second) // until candidates have found it again
				}
				s.handOn(first)
			},
		},
		row{
			number: 15, letter: "p", fault: "leader reaches one member of three, and the others the other two",
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.recovery(), "the partition")
				s.onlyReach(first.Who, func(i int) bool { return i == 0 })
				for _, who := range s.others(first.Who) {
					s.onlyReach(who, func(i int) bool { return i != 0 })
				}
				s.awaitOf(first.Who, history.Ended)
				s.leader(first.Who)
				s.pass(2 * s.ttl)
				s.heal()
				s.pass(s.ttl)
				s.due("", s.recovery(), "all was healed")
				s.alive()
			},
		},
	)
	for i := range rows {
		rows[i].only = on("it is about members that grant each other leases", "paxos")
	}
	return rows
}

// restartRows have members forget what they have granted.
func restartRows() []row {
	lost := row{number: 11, own: true, must: []oracle.Rule{oracle.LeaderInTime}, play: loseFolders}
	founding, waiting := lost, lost
	founding.letter, founding.fault = "p", "two members lose their folders, and are started as new ones within a term"
	founding.red, founding.without = []oracle.Rule{oracle.OneLeader}, "a quarantine"
	founding.times = 12 // time for the next leader while the first trusts its lease
	founding.servers = func(t testing.TB, c column) *servers { return startPeers(t, upTo(12*c.ttl), true) }
	waiting.letter, waiting.fault = "q", "two members lose their folders, and are started again within a term"
	waiting.with = founding.without
	waiting.times = 6
	waiting.servers = func(t testing.TB, c column) *servers { return startPeers(t, upTo(6*c.ttl), false) }
	return []row{
		founding, waiting,
		{
			number: 51, letter: "a", fault: "members restarted one after the other", own: true, times: 3, short: true,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 3*s.silence())
				for _, node := range s.nodes {
					s.fault("a member is restarted")
					node.Restart()
					s.healed("it is there, in quarantine")
					s.pass(s.silence() + time.Second)
				}
				s.handOn(first)
			},
		},
		{
			number: 51, letter: "b", fault: "two members of three restarted at once", own: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: restartAtOnce(2),
		},
		{
			number: 51, letter: "c", fault: "all members restarted at once", own: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: restartAtOnce(3),
		},
	}
}

// loseFolders has two members forget everything while the leader does not hear of
// it, and nobody else can hear of it from the third.
func loseFolders(s *stage) {
	first := s.alive()
	s.blackHole(first.Who)
	for _, who := range s.others(first.Who) {
		s.onlyReach(who, func(i int) bool { return i != 2 })
	}
	s.fault("two members are killed, and their folders lost")
	for _, node := range s.nodes[:2] {
		node.Kill()
		node.Wipe()
		node.Restart()
	}
	s.healed("they are there again, without them")
	s.due(first.Who, s.recovery(), "the members' return")
	p := s.partOf(len(s.names), "dora")
	p.Links[s.addrs[2]] = testenv.FreeAddr(s.t) // where nobody listens
	s.start(p)
	s.leader(first.Who)
	s.awaitOf(first.Who, history.Ended)
	s.heal()
	s.pass(s.ttl)
}

// restartAtOnce restarts so many members. Nobody may be elected until what they have
// forgotten is over.
func restartAtOnce(n int) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.fault("members are killed")
		for _, node := range s.nodes[:n] {
			node.Kill()
		}
		killed := boottime.Now()
		for _, node := range s.nodes[:n] {
			node.Restart()
		}
		s.healed("they are there, in quarantine")
		s.due("", s.recovery(), "the members' restart")
		s.awaitOf(first.Who, history.Ended)
		next := s.leader()
		require.Greater(s.t, next.Begin, killed+s.peers.MaxTTL, "somebody was elected by members in quarantine")
		s.alive()
		s.pass(s.ttl)
	}
}

// rateRows have members count time wrongly.
func rateRows() []row {
	rate := row{
		number: 30, own: true, times: 8, must: []oracle.Rule{oracle.LeaderInTime},
		play: isolate((*stage).blackHole, 0),
	}
	double, allowed := rate, rate
	double.letter, double.fault = "a", "members' clocks run twice as fast"
	double.red, double.without = []oracle.Rule{oracle.OneLeader}, "clocks that run as the members agree"
	double.servers = func(t testing.TB, _ column) *servers { return startPeers(t, upTo(time.Minute), true, 1000, 1000, 1000) }
	allowed.letter, allowed.fault = "b", "members' clocks run 9 % fast and slow, as they agree"
	allowed.with = double.without
	allowed.servers = func(t testing.TB, _ column) *servers {
		agreed := upTo(time.Minute)
		agreed.Drift = 100
		return startPeers(t, agreed, true, 90, -90, 90)
	}
	return []row{double, allowed}
}

// doubleRows have members there that should not be.
func doubleRows() []row {
	return []row{
		{
			number: 52, letter: "a", fault: "two members started twice, and a candidate led to the copies", times: 5,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: startTwice,
		},
		{
			number: 52, letter: "b", fault: "a member with another longest TTL", own: true, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: replaceMember(func(m *member) { m.MaxTTL *= 2 }),
		},
		{
			number: 52, letter: "c", fault: "a member with another list of members", own: true, times: 3,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: replaceMember(func(m *member) { m.Members = []string{m.Members[0], m.Members[2]} }),
		},
		{
			number: 52, letter: "d", fault: "a candidate with another longest TTL", times: 5, candidates: 2,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				p, other := s.partOf(len(s.names), "dora"), *s.peers
				other.MaxTTL *= 2
				p.Peers = &other
				s.start(p)
				s.awaitOf("dora", history.Ready)
				s.pass(2 * s.ttl)
				s.due(first.Who, s.crash(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who, "dora")
				s.pass(s.ttl)
				require.Empty(s.t, s.events().Of("dora", history.Seen), "dora was told something")
			},
		},
	}
}

// startTwice starts copies of two members, which know of no lease, and a candidate
// that reaches those in their places. Were they let vote, it would be elected.
func startTwice(s *stage) {
	first := s.alive()
	s.keep(first, 2*s.ttl)
	s.fault("two members are started twice")
	p, said := s.partOf(len(s.names), "dora"), []*testenv.Speech{}
	for _, addr := range s.addrs[:2] {
		p.Links[addr] = testenv.FreeAddr(s.t)
		said = append(said, startMember(s.t, member{terms: *s.peers, ID: addr, Listen: p.Links[addr], Founding: true}))
	}
	s.start(p)
	s.awaitOf("dora", history.Ready)
	for _, of := range said {
		s.complains(of, "it is started twice")
	}
	s.pass(2 * s.ttl)
	s.due(first.Who, s.crash(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who, "dora")
	s.pass(s.ttl)
	require.Empty(s.t, s.events().Of("dora", history.Elected), "dora was elected by copies")
}

// replaceMember puts a member in the place of another that the others do not agree
// with. Its vote counts for nothing, and where it would be needed nobody leads.
func replaceMember(change func(*member)) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.fault("a member comes back with other settings")
		s.keep(first, 2*s.ttl)
		s.nodes[0].Kill()
		m := member{terms: *s.peers, ID: s.addrs[0], Founding: true}
		change(&m)
		said := startMember(s.t, m)
		s.complains(said, "they must be the same")
		s.pass(2 * s.ttl)
		s.fault("another member is killed")
		s.nodes[1].Kill()
		since := s.awaitOf(first.Who, history.Ended).At
		s.nobody(since, 2*s.ttl)
		s.nodes[1].Restart()
		s.healed("it is there, in quarantine")
		s.due("", s.recovery(), "its return")
		s.leader()
		s.pass(s.ttl)
	}
}

// complains waits until a member has said something.
func (s *stage) complains(said *testenv.Speech, text string) {
	s.t.Helper()
	s.eventually("a member says that "+text, func(context.Context) bool { return strings.Contains(said.String(), text) })
}

// deleteOwn deletes the record by the store itself, which is the only way.
func (s *stage) deleteOwn() error {
	rec, err := s.store.Get(s.t.Context(), s.name)
	if err != nil {
		return err
	}
	return s.store.Delete(s.t.Context(), s.name, rec)
}
