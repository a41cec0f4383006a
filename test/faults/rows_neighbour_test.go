//go:build linux

package faults

import (
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// neighbourRows are about processes that lead many elections.
func neighbourRows() []row {
	inTime := []oracle.Rule{oracle.LeaderInTime}
	return []row{
		{
			number: 56, letter: "a", fault: "one record of many overwritten by another program", times: 5,
			only: and(inBatches, holdsOthers), part: both(quietly, surround(200)),
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				before := s.surrounded(first.Who, 0)
				s.fault(first.Who + " hears nothing on its watches")
				s.tell(first.Who, "fault watch dropreply") // the batch is to find it
				since := boottime.Now()
				s.overwrite("somebody else's lock")
				s.deposed(first, since)
				s.tell(first.Who, "heal")
				s.healed("it hears again")
				s.nobody(since+s.slack(s.ttl/3), s.life.Max+s.ttl)
				s.unharmed()
				s.undisturbed(first.Who, before)
				s.gone()
			},
		},
		{
			number: 56, letter: "b", fault: "slot migrates, with many records", own: true, times: 5,
			only: on("it has no shards", kindCluster), part: surround(200),
			must: []oracle.Rule{oracle.LeaderKept},
			play: migrateMany,
		},
		{
			number: 56, letter: "c", fault: "server down for 3 TTL, under many elections", own: true, times: 5,
			only: allServers, part: surround(100), must: inTime,
			play: func(s *stage) {
				first := s.alive()
				for _, who := range s.names {
					s.surrounded(who, 0)
				}
				s.fault("the server is killed")
				s.killServers()
				s.awaitOf(first.Who, history.Ended)
				s.pass(2 * s.ttl)
				dark := map[string]count{}
				for _, who := range s.names {
					dark[who] = s.count(who)
					require.Zero(s.t, dark[who].leading)
				}
				s.restartServers()
				s.healed("it serves again")
				s.due("", s.recovery(), "the server's return")
				s.leader()
				for _, who := range s.names {
					now := s.surrounded(who, 0)
					s.t.Logf("%s leads %d elections again after %d requests", who, now.leading, now.requests-dark[who].requests)
					require.Less(s.t, now.requests-dark[who].requests, 12*now.leading+2*usual)
				}
				s.pass(s.ttl)
			},
		},
		{
			number: 56, letter: "d", fault: "all sessions destroyed by an operator", own: true, times: 5,
			only: and(onConsul, ownExpiry), part: both(quietly, surround(100)), must: inTime,
			play: destroySessions,
		},
	}
}

// surround has each process lead so many elections beside the one that is played, and fewer
// where each of them costs more: Consul and a cluster of Redis are asked about every record by
// itself, and in a database a claim is a transaction.
func surround(many int) func(*part) {
	return func(p *part) {
		p.Neighbours = many
		if p.Store == kindConsul || p.Store == kindCluster || inTable(p.Store) {
			p.Neighbours = many / 5
		}
	}
}

// inBatches is for rows about many records that are refreshed together.
func inBatches(c column) string {
	switch {
	case c.observed:
		return "each record is refreshed by itself where candidates judge"
	case c.kind == kindSQLite:
		return "it writes one record at a time, and several hundred are too many for it"
	}
	return on("each record is refreshed by itself", "etcd", "etcd3", "redis", "redis-sentinel", "postgres", "mariadb")(c)
}

// migrateMany moves the slot there while the leader goes on, with the keys of its neighbours,
// one by one.
func migrateMany(s *stage) {
	first := s.alive()
	before := s.surrounded(first.Who, 0)
	m := s.migration()
	keys := m.from.ClusterGetKeysInSlot(s.t.Context(), int(m.slot), 10_000).Val()
	require.Greater(s.t, len(keys), 3*s.actor(first.Who).part.Neighbours/2, "the slot has records of neighbours")
	m.begin()
	s.fault("its keys migrate")
	since := boottime.Now()
	s.keep(first, 3*s.ttl)
	for i, key := range keys {
		m.moveAny(key)
		if i == len(keys)/3 || i == len(keys)*2/3 {
			s.pass(s.ttl) // each record is refreshed, wherever it is
		}
	}
	s.pass(s.ttl - min(s.ttl, boottime.Now()-since-2*s.ttl))
	m.end()
	s.pass(s.ttl)
	s.undisturbed(first.Who, before)
}

// destroySessions destroys the sessions of all records, that of the leader's at last.
func destroySessions(s *stage) {
	first := s.alive()
	before := s.surrounded(first.Who, 0)
	s.fault("all sessions are destroyed")
	own := s.session()
	sessions, _, err := s.consul().Session().List(nil)
	require.NoError(s.t, err)
	for _, one := range sessions {
		if one.ID != own {
			_, err := s.consul().Session().Destroy(one.ID, nil)
			require.NoError(s.t, err)
		}
	}
	s.interfered(s.ttl, "and the leader's")
	_, err = s.consul().Session().Destroy(own, nil)
	require.NoError(s.t, err)
	s.awaitOf(first.Who, history.Ended)
	s.due("", s.recovery(), "its session was destroyed")
	s.leader()
	now := s.surrounded(first.Who, before.terms+before.leading)
	require.Equal(s.t, before.terms+before.leading, now.terms, "each is led again, once")
	s.pass(s.ttl)
	s.undisturbed(first.Who, now)
}
