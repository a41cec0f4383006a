//go:build linux

package faults

import (
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// redisClusterRows are about what only a Redis Cluster has. Failovers are
// among the losses of a record.
func redisClusterRows() []row {
	only := on("it has no shards", kindCluster)
	return []row{
		{
			number: 47, letter: "c", fault: "slot migrates", own: true, only: only, times: 3, part: both(withoutHeir, quietly),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: migrate,
		},
		{
			number: 47, letter: "d", fault: "primary left in a minority", own: true, only: only,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				lost := s.servers.others(s.servers.leader(s.name))
				s.fault("all other nodes are stopped")
				for _, node := range lost {
					node.Pause()
				}
				s.hears(first.Who, "CLUSTERDOWN")
				s.awaitOf(first.Who, history.Ended)
				s.nobody(boottime.Now(), 2*s.ttl)
				for _, node := range lost {
					node.Continue()
				}
				s.healed("they go on")
				// The nodes have to agree again first.
				s.due("", 10*time.Second, "the majority's return")
				s.leader()
				s.pass(s.ttl)
			},
		},
	}
}

// A migration moves the election's slot from one node to another.
type migration struct {
	*stage
	slot         int64
	from, to     *redis.Client
	fromID, toID any
}

// migrate moves the slot there while the leader goes on, and back while it
// leaves.
func migrate(s *stage) {
	first := s.alive()
	m := s.migration()
	s.keep(first, 4*s.ttl)
	m.begin()
	s.pass(s.ttl)
	m.move(s.name)
	s.pass(s.ttl)
	m.move("{" + s.name + "}:election-fence")
	s.pass(s.ttl)
	m.end()
	s.pass(s.ttl)
	for _, who := range s.names {
		require.NotContains(s.t, s.actor(who).said.String(), "TRYAGAIN", "reads follow the record")
	}

	s.shards.AwaitReady()
	m = s.migration()
	m.begin()
	m.move(s.name)
	s.tell(first.Who, "resign")
	since := s.awaitOf(first.Who, history.Ended).At
	for _, who := range s.names {
		s.hears(who, "TRYAGAIN")
	}
	s.nobody(since, s.ttl)
	m.move("{" + s.name + "}:election-fence")
	s.due("", s.recovery(), "the end of the migration")
	m.end()
	s.leader()
}

// migration is from the slot's present owner to another primary.
func (s *stage) migration() *migration {
	s.t.Helper()
	ctx := s.t.Context()
	owner := s.shards.Owner(s.name)
	m := &migration{stage: s, from: s.operator(owner)}
	m.slot = m.from.ClusterKeySlot(ctx, s.name).Val()
	for _, node := range s.servers.others(owner) {
		client := s.operator(node)
		if role := client.Do(ctx, "role").Val().([]any)[0]; role == "master" {
			m.to = client
			break
		}
	}
	m.fromID, m.toID = m.from.Do(ctx, "cluster", "myid").Val(), m.to.Do(ctx, "cluster", "myid").Val()
	return m
}

func (m *migration) begin() {
	m.t.Helper()
	m.fault("the slot migrates")
	m.setSlot(m.to, "importing", m.fromID)
	m.setSlot(m.from, "migrating", m.toID)
}

func (m *migration) move(key string) {
	m.t.Helper()
	m.fault(key + " migrates")
	require.True(m.t, m.moveAny(key), "there is no %s", key)
}

// moveAny moves a key, and reports whether it was there.
func (m *migration) moveAny(key string) bool {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.to.Options().Addr)
	require.NoError(m.t, err)
	done, err := m.from.Migrate(m.t.Context(), host, port, key, 0, time.Minute).Result()
	require.NoError(m.t, err)
	return done == "OK"
}

func (m *migration) end() {
	m.t.Helper()
	m.healed("the slot has migrated")
	m.setSlot(m.to, "node", m.toID)
	m.setSlot(m.from, "node", m.toID)
}

func (m *migration) setSlot(node *redis.Client, verb string, id any) {
	m.t.Helper()
	require.NoError(m.t, node.Do(m.t.Context(), "cluster", "setslot", m.slot, verb, id).Err())
}
