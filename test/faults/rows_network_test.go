//go:build linux

package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// networkRows spoil the way between a candidate and the store.
func networkRows() []row {
	return []row{
		{
			number: 15, letter: "a", fault: "leader cut off", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: isolate((*stage).cut, 0),
		},
		{
			number: 15, letter: "b", fault: "leader cut off silently", only: overNetwork, short: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: isolate((*stage).blackHole, 0),
		},
		{
			// What it sends while it still trusts its lease is carried out.
			number: 16, fault: "what is sent to the leader is lost", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: isolate((*stage).cutReplies, 1),
		},
		{
			number: 17, fault: "what the leader sends is lost", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: isolate((*stage).cutRequests, 0),
		},
		{
			number: 18, fault: "candidate cut off", only: overNetwork, candidates: 2, times: 2,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				next := s.others(first.Who)[0]
				s.keep(first, 2*s.ttl)
				s.blackHole(next)
				s.pass(2 * s.ttl)
				s.unreachable(next)
				s.heal(next)
				s.due(first.Who, s.takeover(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
		{
			// A refresh may take three tenths of the TTL. A client of Redis drops a
			// connection whose answer came too late, and needs up to four round trips
			// then: to ask a sentinel, to say hello, for the script, and for the script's
			// text if the server is another.
			number: 19, fault: "300 to 700 ms round trips", only: overNetwork, times: 10,
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				s.links("is 150 to 350 ms away", func(p *testenv.Proxy) {
					p.DelayBetween(150*time.Millisecond, 350*time.Millisecond)
				})
				s.slowAnswer(first.Who, 300*time.Millisecond)
				s.pass(2 * s.ttl)
				trips := 4
				if s.col.kind == kindPaxos { // two to delete, one to see it, and three to create
					trips = 6
				}
				s.due(first.Who, s.release()+time.Duration(trips)*700*time.Millisecond, "its end")
				s.tell(first.Who, "close")
				s.leader(first.Who)
			},
			peers: func(r *row) {
				r.servers = func(t testing.TB, _ column) *servers {
					agreed := upTo(time.Minute)
					agreed.Round = 2 * time.Second // for two round trips
					return startPeers(t, agreed, true)
				}
			},
		},
		{
			number: 20, fault: "answers take 0.9 TTL", only: overNetwork,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: isolate(func(s *stage, who ...string) {
				s.links("is answered late", func(p *testenv.Proxy) { p.DelayReplies(s.ttl * 9 / 10) }, who...)
			}, 1),
		},
		{
			number: 22, letter: "a", fault: "the leader's connections die silently", times: 3,
			only: and(overNetwork, on("all requests share one connection; see 22b", "consul", "consul3", "redis", "redis-sentinel", "redis-cluster", "postgres", "mariadb")),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				s.links("has connections that are dead", dead(time.Now()), first.Who)
				s.pass(2 * s.ttl)
				s.due(first.Who, s.takeover(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
		{
			// gRPC notices after 10 s at the earliest, since it raises shorter times to
			// that. A client of members, which has one connection with each, does after
			// 3 s.
			number: 22, letter: "b", fault: "the leader's only connection dies silently", times: 2,
			only: and(overNetwork, on("each request may use another connection; see 22a", "etcd", "etcd3", "paxos")),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.takeover(), "its connection died")
				s.links("has a connection that is dead", dead(time.Now()), first.Who)
				s.awaitOf(first.Who, history.Ended)
				second := s.leader(first.Who)
				s.awaitOf(first.Who, history.Seen)
				s.due(second.Who, s.takeover(), "SIGKILL")
				s.kill(second.Who)
				s.leader(second.Who)
			},
		},
	}
}

// dead makes the connections of a link that were opened before an instant
// swallow everything, for good.
func dead(before time.Time) func(*testenv.Proxy) {
	return func(p *testenv.Proxy) {
		p.Affect(func(c testenv.Connection) bool { return c.Opened.Before(before) })
		p.BlackHole()
	}
}

// unreachable demands that nothing is answered over a candidate's links.
func (s *stage) unreachable(who string) {
	s.t.Helper()
	store, closeStore, err := open(s.actor(who).part)
	require.NoError(s.t, err)
	defer closeStore()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.ttl/3)
	defer cancel()
	_, err = store.Get(ctx, s.name)
	require.ErrorIs(s.t, err, context.DeadlineExceeded, "%s is answered", who)
}

// isolate takes the leader's network away and gives it back. The record may live
// for some TTLs longer than if the leader had vanished.
func isolate(spoil func(s *stage, who ...string), ttls int) func(*stage) {
	return func(s *stage) {
		first := s.alive()
		s.due(first.Who, s.takeover()+time.Duration(ttls)*s.ttl, "its network failed")
		spoil(s, first.Who)
		s.awaitOf(first.Who, history.Ended)
		second := s.leader(first.Who)
		s.pass(s.ttl)
		s.heal(first.Who)
		s.pass(s.ttl)
		// It is a candidate like any other again.
		s.due(second.Who, s.crash(), "SIGKILL")
		s.kill(second.Who)
		s.leader(second.Who)
	}
}
