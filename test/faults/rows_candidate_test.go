//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// candidateRows are what befalls a candidate's process.
func candidateRows() []row {
	return []row{
		{
			number: 1, fault: "leader killed", short: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				for range 3 {
					first := s.alive()
					s.due(first.Who, s.crash(), "SIGKILL")
					s.kill(first.Who)
					s.leader(first.Who)
					s.again(first.Who)
				}
			},
		},
		{
			number: 2, letter: "a", fault: "leader's work panics", times: 3,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.release(), "a panic")
				s.panic(first.Who)
				s.leader(first.Who)
			},
		},
		{
			number: 2, letter: "b", fault: "leader ends by os.Exit",
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.crash(), "os.Exit")
				s.exit(first.Who)
				s.leader(first.Who)
			},
		},
		{
			number: 3, fault: "leader stopped for half a TTL", times: 3,
			must: []oracle.Rule{oracle.LeaderKept},
			play: func(s *stage) {
				first := s.alive()
				s.awaitOf(first.Who, history.Extended)
				s.keep(first, 2*s.ttl)
				s.stop(first.Who)
				s.pass(s.ttl / 2)
				s.wake(first.Who)
				s.pass(2 * s.ttl)
			},
		},
		{
			number: 4, fault: "leader stopped for 3 TTL", short: true,
			must: []oracle.Rule{oracle.LeaderInTime, oracle.SleepersNotice},
			play: stopForLong,
		},
		{
			number: 5, letter: "a", fault: "leader stopped between a refresh and its answer",
			must: []oracle.Rule{oracle.LeaderInTime, oracle.SleepersNotice},
			play: func(s *stage) {
				first := s.alive()
				s.tell(first.Who, "freeze refresh after")
				asleep := s.asleep(first.Who)
				s.note(history.Event{At: asleep.At, Kind: history.Due, Who: first.Who, Within: s.takeover(), Text: "SIGSTOP"})
				s.leader(first.Who)
				s.pass(2 * s.ttl)
				s.wake(first.Who)
				s.awaitOf(first.Who, history.Ended)
				s.pass(s.ttl)
			},
		},
		{
			number: 5, letter: "b", fault: "candidate stopped between its create and the answer", candidates: 2,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				next := s.others(first.Who)[0]
				s.tell(next, "freeze create after")
				s.kill(first.Who)
				asleep := s.asleep(next)
				s.note(history.Event{At: asleep.At, Kind: history.Due, Who: next, Within: s.takeover(), Text: "SIGSTOP"})
				s.again(first.Who)
				s.leader(next)
				s.pass(s.ttl)
				s.wake(next)
				s.pass(2 * s.ttl)
			},
		},
		{
			number: 6, fault: "candidate stopped while it waits", times: 2,
			must: []oracle.Rule{oracle.LeaderInTime, oracle.LeaderKept},
			play: func(s *stage) {
				first := s.alive()
				waits := s.others(first.Who)[0]
				s.keep(first, 3*s.ttl/2)
				s.stop(waits)
				s.pass(3 * s.ttl / 2)
				s.due(first.Who, s.crash(), "SIGKILL")
				s.kill(first.Who)
				second := s.leader(first.Who)
				s.pass(s.ttl)
				s.keep(second, s.ttl)
				s.wake(waits)
				s.pass(s.ttl)
			},
		},
		{
			number: 7, fault: "CPU starved", alone: true,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: starve,
		},
		{
			number: 8, letter: "a", fault: "leader closed during a refresh", times: 3,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.tell(first.Who, fmt.Sprintf("delay refresh reply %v", s.ttl/4))
				s.await("a refresh", func(e history.Event) bool {
					return e.Who == first.Who && e.Kind == history.Sent && e.Op == "refresh"
				})
				s.due(first.Who, s.release(), "its end")
				s.tell(first.Who, "close")
				second := s.leader(first.Who)
				s.pass(s.ttl)
				now, _ := s.leads()
				require.Equal(s.t, second.Token, now.Token, "nobody took the safe from the next leader")
			},
		},
		{
			number: 8, letter: "b", fault: "leader resigns", times: 3,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				for range 5 {
					first := s.alive()
					s.tell(first.Who, "resign")
					// It leaves the safe to the others for a moment, and is then one of them.
					ended := s.awaitOf(first.Who, history.Ended)
					s.note(history.Event{At: ended.At, Kind: history.Due, Within: s.release(), Text: "a resignation"})
					s.leader()
				}
			},
		},
		{
			number: 53, fault: "50 candidates at once, with short terms", candidates: 5,
			must:     []oracle.Rule{oracle.LeaderInTime},
			requests: 200, // each term's end is another vacancy, which each may try to fill
			part:     func(p *part) { p.crowd, p.Turn = 10, 50*time.Millisecond },
			play: func(s *stage) {
				s.due("", s.release(), "50 began to stand")
				s.leader()
				s.pass(15 * time.Second)
				require.Greater(s.t, len(s.events().Stretches()), 10, "terms of 50 ms within 15 s")
			},
		},
	}
}

// both has row.part change two things. The other may be nil.
func both(one, other func(*part)) func(*part) {
	return func(p *part) {
		one(p)
		if other != nil {
			other(p)
		}
	}
}

// quietly says for row.part that nobody proclaims anything.
func quietly(p *part) { p.Quiet = true }

// stopForLong stops a leader between a look at its term and the write that
// follows, which a fence has to refuse then, and another one at any place.
func stopForLong(s *stage) {
	first := s.alive()
	s.tell(first.Who, "freeze work")
	asleep := s.asleep(first.Who)
	s.note(history.Event{At: asleep.At, Kind: history.Due, Who: first.Who, Within: s.takeover(), Text: "SIGSTOP"})
	s.leader(first.Who)
	s.pass(s.ttl)
	s.wake(first.Who)
	s.awaitOf(first.Who, history.Refused)
	s.awaitOf(first.Who, history.Ended)

	second := s.alive()
	s.due(second.Who, s.takeover(), "SIGSTOP")
	s.stop(second.Who)
	s.leader(second.Who)
	s.pass(2 * s.ttl)
	s.wake(second.Who)
	s.awaitOf(second.Who, history.Ended)
	s.pass(s.ttl / 2)
}

// starve lets others burn all processors, and the leader come last.
func starve(s *stage) {
	first := s.alive()
	s.fault("no processor is free, and " + first.Who + " comes last")
	renice(s.t, s.actor(first.Who).Cmd.Process.Pid, 19)
	stop := burn(s.t)
	s.pass(6 * s.ttl)
	s.healed("the processors are free")
	s.due("", s.takeover(), "the processors were free again")
	stop()
	s.leader()
	s.pass(s.ttl)
}
