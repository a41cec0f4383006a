//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// hostRows spoil the network of hosts: each candidate runs in a network
// namespace of its own, and packets are lost on their way. That is what proxies
// cannot show: TCP itself has to notice.
func hostRows() []row {
	rows := []row{
		{
			number: 15, letter: "h", fault: "leader's host cut off",
			play: isolateHost((*testenv.Host).Cut, 0),
		},
		{
			// What it sends while it still trusts its lease is carried out.
			number: 16, letter: "h", fault: "packets to the leader's host lost",
			play: isolateHost((*testenv.Host).CutReplies, 1),
		},
		{
			number: 17, letter: "h", fault: "packets from the leader's host lost",
			play: isolateHost((*testenv.Host).CutRequests, 0),
		},
		{
			// No packet tells the servers that it is gone.
			number: 1, letter: "h", fault: "leader's host lost",
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.takeover(), "its host was lost")
				s.onHost(first.Who, "is cut off", (*testenv.Host).Cut)
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
		{
			number: 21, letter: "a", fault: "10 % of packets lost", times: 5,
			must: []oracle.Rule{oracle.LeaderKept},
			play: lose(10, 2),
		},
		{
			number: 21, letter: "b", fault: "30 % of packets lost", times: 5,
			play: lose(30, 0),
			// Connections are given up after 3 s of silence, and come back slowly.
			peers: func(r *row) { r.times = 10 },
		},
	}
	for i := range rows {
		rows[i].only = overNetwork
		rows[i].prepare = func(s *stage, who string, cmd *exec.Cmd) { s.host(who).Command(cmd) }
		rows[i].must = append(rows[i].must, oracle.LeaderInTime)
	}
	return rows
}

// host returns the host on which a candidate runs.
func (s *stage) host(who string) *testenv.Host {
	if s.homes == nil {
		s.network, s.homes = testenv.NewNetwork(s.t), map[string]*testenv.Host{}
	}
	if s.homes[who] == nil {
		s.homes[who] = s.network.Host()
	}
	return s.homes[who]
}

// onHost spoils or heals the network of a candidate's host, and notes that.
func (s *stage) onHost(who, fault string, spoil func(*testenv.Host)) {
	s.t.Helper()
	e := history.Event{Kind: history.Fault, Who: who, Text: "its host " + fault}
	if fault == "" {
		e = history.Event{Kind: history.Healed, Who: who, Text: "its host is connected again"}
	}
	s.note(e)
	spoil(s.host(who))
}

// isolateHost takes the network of the leader's host away and gives it back. The
// record may live for some TTLs longer than if the leader had vanished.
func isolateHost(spoil func(*testenv.Host), ttls int) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.due(first.Who, s.takeover()+time.Duration(ttls)*s.ttl, "its network failed")
		s.onHost(first.Who, "loses packets", spoil)
		s.awaitOf(first.Who, history.Ended)
		second := s.leader(first.Who)
		s.pass(s.ttl)
		s.onHost(first.Who, "", (*testenv.Host).Heal)
		s.pass(s.ttl)
		s.due(second.Who, s.crash(), "SIGKILL")
		s.kill(second.Who)
		s.leader(second.Who)
	}
}

// lose loses some percent of all packets, each way. A leader has to last for
// some TTLs, and is killed then. A request may need as many tries as there are
// in a TTL.
func lose(percent, ttls int) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		if ttls > 0 {
			s.keep(first, time.Duration(ttls)*s.ttl)
		}
		for _, who := range s.names {
			s.onHost(who, fmt.Sprintf("loses %d %% of the packets", percent), func(h *testenv.Host) { h.Loss(percent) })
		}
		s.pass(2 * s.ttl)
		now := s.leader()
		s.due(now.Who, s.takeover()+s.ttl, "SIGKILL")
		require.Positive(s.t, s.repeated(now.Who), "TCP had to send something again")
		s.kill(now.Who)
		s.leader(now.Who)
	}
}

// repeated returns how many segments TCP has sent again on a candidate's host.
func (s *stage) repeated(who string) int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", s.actor(who).Cmd.Process.Pid))
	require.NoError(s.t, err)
	names, values, found := []string{}, []string{}, 0
	for line := range strings.Lines(string(text)) {
		if words, ok := strings.CutPrefix(line, "Tcp:"); ok {
			names, values = values, strings.Fields(words)
		}
	}
	at := slices.Index(names, "RetransSegs")
	require.GreaterOrEqual(s.t, at, 0)
	_, err = fmt.Sscan(values[at], &found)
	require.NoError(s.t, err)
	return found
}
