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
)

// clockRows set the wall clock of a server that judges expiry by it. A jump ahead
// makes two leaders, of which the fence stops the first. Where candidates judge,
// nothing comes of it.
func clockRows() []row {
	clock := row{
		number: 29, only: withClock, own: true, times: 3,
		servers: func(t testing.TB, c column) *servers { return c.clock(t) },
		must:    []oracle.Rule{oracle.LeaderInTime},
	}
	ahead, back, blocked := clock, clock, clock
	ahead.letter, ahead.fault, ahead.times = "a", "server's wall clock jumps 2 TTL ahead", 6
	ahead.red, ahead.without = []oracle.Rule{oracle.OneLeader}, "candidates that judge expiry themselves"
	ahead.play = func(s *stage) {
		s.jumpAhead(2 * s.ttl)
		s.stale()
	}
	ahead.observed = func(r *row) {
		r.short, r.times = true, 3
		r.red, r.without, r.with = nil, "", ahead.without
		r.play = func(s *stage) { s.jumpAhead(2 * s.ttl) }
	}
	back.letter, back.fault = "b", "server's wall clock jumps an hour back within a term"
	back.must = append(back.must, oracle.LeaderKept)
	back.play = jumpBack
	back.observed = func(r *row) { r.play = jumpAbout }
	blocked.letter, blocked.fault, blocked.times = "c", "server's wall clock jumps an hour back after the leader was killed", 1
	blocked.play = func(s *stage) {
		first := s.alive()
		s.kill(first.Who)
		s.jump(-time.Hour)
		s.lives(50 * time.Minute)
		s.nobody(boottime.Now(), 3*s.ttl)
		// By the right time the record has expired long ago.
		s.due(first.Who, s.vacancy(), "the clock was put right")
		s.jump(time.Hour)
		s.leader(first.Who)
	}
	blocked.observed = func(r *row) {
		r.play = func(s *stage) {
			first := s.alive()
			s.due(first.Who, s.crash(), "SIGKILL")
			s.kill(first.Who)
			s.jump(-time.Hour)
			s.leader(first.Who)
			s.pass(s.ttl)
		}
	}
	return []row{ahead, back, blocked}
}

// jump moves the wall clock of the server.
func (s *stage) jump(by time.Duration) {
	s.t.Helper()
	s.fault("the server's wall clock jumps by " + by.String())
	s.nodes[0].JumpClock(by)
}

// jumpAhead has the clock go ahead while the leader is cut off and trusts its
// lease.
func (s *stage) jumpAhead(by time.Duration) {
	s.t.Helper()
	first := s.alive()
	s.awaitOf(first.Who, history.Extended)
	s.cut(first.Who)
	s.due(first.Who, s.recovery(), "its network failed")
	s.jump(by)
	s.leader(first.Who)
	s.awaitOf(first.Who, history.Ended)
	s.heal(first.Who)
	s.pass(s.ttl / 2)
}

// jumpBack has the clock go back while the leader lives: its next refresh puts
// the expiry right, and the next leader has a larger token all the same.
func jumpBack(s *stage) {
	first := s.alive()
	s.keep(first, s.ttl)
	s.jump(-time.Hour)
	s.lives(50 * time.Minute)
	if s.col.kind != kindMariaDB { // there a refresh never brings an expiry forward
		s.eventually("the expiry is as it was", func(context.Context) bool { return s.left() <= s.ttl })
	}
	s.pass(s.ttl)
	s.handOn(first)
}

// jumpAbout has the clock go ahead and back by hours while the leader lives.
func jumpAbout(s *stage) {
	first := s.alive()
	s.keep(first, 3*s.ttl)
	for _, by := range []time.Duration{13 * time.Hour, -26 * time.Hour, 12 * time.Hour} {
		s.jump(by)
		s.pass(s.ttl)
	}
	s.handOn(first)
}

// handOn has the leader leave, and the next one killed.
func (s *stage) handOn(first history.Stretch) {
	s.t.Helper()
	s.due(first.Who, s.release(), "its end")
	s.tell(first.Who, "close")
	second := s.leader(first.Who)
	s.due(second.Who, s.takeover(), "SIGKILL")
	s.kill(second.Who)
	s.leader(second.Who)
}

// left is the time that the server gives the record.
func (s *stage) left() time.Duration {
	s.t.Helper()
	if s.inTable() {
		return s.leftInRow()
	}
	return s.redis().PTTL(s.t.Context(), s.name).Val()
}

// lives demands that the server gives the record more time than some.
func (s *stage) lives(more time.Duration) {
	s.t.Helper()
	require.Greater(s.t, s.left(), more)
}
