//go:build linux

package faults

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// redisServerRows are about memory, and about servers that do not write.
func redisServerRows() []row {
	eviction := row{
		number: 37, letter: "a", fault: "memory short, records evicted", own: true, times: 5,
		only:    and(onRedis("it evicts nothing"), ownExpiry),
		servers: withSettings("--maxmemory-policy", "volatile-lru"),
		must:    []oracle.Rule{oracle.LeaderInTime},
		red:     []oracle.Rule{oracle.OneLeader}, without: "maxmemory-policy noeviction",
		play: shortOfMemory,
	}
	noeviction := eviction
	noeviction.letter, noeviction.fault = "b", "memory short, nothing evicted"
	noeviction.with = eviction.without
	noeviction.servers, noeviction.red = withSettings("--maxmemory-policy", "noeviction"), nil
	noeviction.only = onRedis("it evicts nothing")
	lasting := eviction
	lasting.letter, lasting.fault, lasting.red, lasting.without = "c", "memory short, nothing evicted that has no expiry", nil, ""
	lasting.only = and(onRedis("it evicts nothing"), byCandidates)
	return []row{
		eviction,
		noeviction,
		lasting,
		{
			number: 38, letter: "a", fault: "memory used up", own: true, times: 3,
			only: onRedis("it is not told how much memory it may use"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.keep(first, 2*s.ttl)
				relieve := s.fill()
				s.pass(2 * s.ttl)
				s.tell(first.Who, "resign")
				since := s.awaitOf(first.Who, history.Ended).At
				s.hears(first.Who, "OOM")
				s.nobody(since, s.ttl)
				s.due("", s.recovery(), "there is memory again")
				relieve()
				s.leader()
			},
		},
		{
			number: 39, letter: "a", fault: "primary made a replica of another server", own: true,
			only: on("its servers are not told that", kindRedis),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				other := testenv.StartRedis(s.t)
				host, port, err := net.SplitHostPort(other.Addr())
				require.NoError(s.t, err)
				s.readOnly("READONLY", func(c *redis.Client) error { return c.ReplicaOf(s.t.Context(), host, port).Err() },
					func(c *redis.Client) error { return c.ReplicaOf(s.t.Context(), "no", "one").Err() })
			},
		},
		{
			number: 39, letter: "b", fault: "primary without the replicas that it needs to write", own: true,
			only: onRedis("it needs a majority; see the loss of it"),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				needs := func(n int) func(*redis.Client) error {
					return func(c *redis.Client) error {
						return c.ConfigSet(s.t.Context(), "min-replicas-to-write", fmt.Sprint(n)).Err()
					}
				}
				s.readOnly("NOREPLICAS", needs(2), needs(0))
			},
		},
	}
}

// withSettings returns for row.servers that a column's servers have settings of
// their own.
func withSettings(args ...string) func(testing.TB, column) *servers {
	return func(t testing.TB, c column) *servers {
		t.Helper()
		return c.start(t, args...)
	}
}

// fill puts more into the memory of the server that keeps the record than it may
// use from then on. The function that it returns takes it out again.
func (s *stage) fill() (relieve func()) {
	s.t.Helper()
	ctx, client := s.t.Context(), s.primary()
	keys := []string{}
	for i := range 16 {
		keys = append(keys, fmt.Sprintf("{%s}:filler:%d", s.name, i))
		require.NoError(s.t, client.Set(ctx, keys[i], strings.Repeat("x", 1<<20), 0).Err())
	}
	s.fault("the memory is used up")
	require.NoError(s.t, client.ConfigSet(ctx, "maxmemory", "10mb").Err())
	require.ErrorContains(s.t, client.Set(ctx, keys[0], "x", 0).Err(), "OOM")
	return func() {
		require.NoError(s.t, client.Del(ctx, keys...).Err())
		s.healed("there is memory again")
	}
}

// shortOfMemory fills the memory for a moment, while the leader is cut off and
// trusts its lease.
func shortOfMemory(s *stage) {
	first := s.alive()
	s.awaitOf(first.Who, history.Extended)
	s.cut(first.Who)
	s.due(first.Who, s.recovery(), "its network failed")
	s.fill()()
	info := s.primary().InfoMap(s.t.Context(), "stats").Val()
	evicts := len(s.row.red) > 0
	require.Equal(s.t, evicts, info["Stats"]["evicted_keys"] != "0")
	s.leader(first.Who)
	s.awaitOf(first.Who, history.Ended)
	if evicts {
		s.stale()
	}
	s.heal(first.Who)
	s.pass(s.ttl / 2)
}

// readOnly makes the server that keeps the record refuse what would write, by an
// error that begins as given, until the leader has gone and for 2 TTL more.
func (s *stage) readOnly(text string, spoil, mend func(*redis.Client) error) {
	s.t.Helper()
	first := s.alive()
	client := s.primary()
	s.fault("the server does not write")
	require.NoError(s.t, spoil(client))
	since := boottime.Now()
	s.hears(first.Who, text)
	s.awaitOf(first.Who, history.Ended)
	s.nobody(since, 2*s.ttl)
	s.due("", s.recovery(), "the server writes again")
	require.NoError(s.t, mend(client))
	s.healed("the server writes again")
	s.leader()
	s.pass(s.ttl)
}
