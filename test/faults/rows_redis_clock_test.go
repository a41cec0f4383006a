//go:build linux

package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// redisClockRows set the server's wall clock, by which Redis judges expiry. A
// jump ahead makes two leaders; what helps for now is the fence.
func redisClockRows() []row {
	clock := row{
		number: 29, only: on("its server counts with a clock that nobody sets; sentinels and shards are servers like this one", kindRedis),
		own: true, times: 3,
		servers: func(t testing.TB, _ column) *servers { return alone(testenv.StartRedisWithClock(t)) },
		must:    []oracle.Rule{oracle.LeaderInTime},
	}
	ahead, back, blocked := clock, clock, clock
	ahead.letter, ahead.fault, ahead.times = "a", "server's wall clock jumps 2 TTL ahead", 6
	ahead.red, ahead.without = []oracle.Rule{oracle.OneLeader}, "candidates that judge expiry themselves, which this store has not got yet"
	ahead.play = func(s *stage) {
		first := s.alive()
		s.awaitOf(first.Who, history.Extended)
		s.cut(first.Who)
		s.due(first.Who, s.recovery(), "its network failed")
		s.jump(2 * s.ttl)
		s.leader(first.Who)
		s.awaitOf(first.Who, history.Ended)
		s.stale()
		s.heal(first.Who)
		s.pass(s.ttl / 2)
	}
	back.letter, back.fault = "b", "server's wall clock jumps an hour back within a term"
	back.must = append(back.must, oracle.LeaderKept)
	back.play = jumpBack
	blocked.letter, blocked.fault, blocked.times = "c", "server's wall clock jumps an hour back after the leader was killed", 1
	blocked.play = func(s *stage) {
		first := s.alive()
		s.kill(first.Who)
		s.jump(-time.Hour)
		require.Greater(s.t, s.redis().PTTL(s.t.Context(), s.name).Val(), 50*time.Minute)
		s.nobody(boottime.Now(), 3*s.ttl)
		// By the right time the record has expired long ago.
		s.due(first.Who, s.vacancy(), "the clock was put right")
		s.jump(time.Hour)
		s.leader(first.Who)
	}
	return []row{ahead, back, blocked}
}

// jump moves the wall clock of the server.
func (s *stage) jump(by time.Duration) {
	s.t.Helper()
	s.fault("the server's wall clock jumps by " + by.String())
	s.nodes[0].JumpClock(by)
}

// jumpBack has the clock go back while the leader lives: its next refresh puts
// the expiry right, and the next leader has a larger token all the same.
func jumpBack(s *stage) {
	first := s.alive()
	client := s.redis()
	s.keep(first, s.ttl)
	s.jump(-time.Hour)
	require.Greater(s.t, client.PTTL(s.t.Context(), s.name).Val(), 50*time.Minute)
	s.eventually("the expiry is as it was", func(ctx context.Context) bool {
		return client.PTTL(ctx, s.name).Val() <= s.ttl
	})
	s.pass(s.ttl)
	s.due(first.Who, s.release(), "its end")
	s.tell(first.Who, "resign")
	second := s.leader(first.Who)
	s.due(second.Who, s.takeover(), "SIGKILL")
	s.kill(second.Who)
	s.leader(second.Who)
}
