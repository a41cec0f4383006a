//go:build linux

package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/trace"
)

// planted are plays on a real server that show a bug, if it is there: the rules
// in red must be broken with it, and none without it.
func planted() []row {
	return []row{
		{
			number: 20, fault: "late answers, then a cut", bug: bugReceipt, times: 5,
			red: []oracle.Rule{oracle.OneLeader, oracle.DeadlineFromSend, trace.Followed},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the answers to refreshes are late")
				late := s.ttl / 5
				if s.col.kind == kindPaxos {
					late = s.ttl / 4
				}
				s.tell(first.Who, fmt.Sprintf("delay refresh reply %v", late))
				for range 2 {
					s.awaitOf(first.Who, history.Extended)
				}
				s.blackHole(first.Who)
				s.leader(first.Who)
				s.awaitOf(first.Who, history.Ended)
			},
			// Nobody tells a client that a record has expired.
			peers: func(r *row) { r.times = 10 },
		},
		{
			number: 32, fault: "record deleted by an operator", bug: bugBlindRefresh, times: 2,
			red:  []oracle.Rule{oracle.OneLeader, oracle.DeadlineFromSend, trace.Followed},
			play: deleted,
		},
		{
			number: 32, fault: "record deleted by an operator, refreshed in a batch", bug: bugSharedProof, times: 2,
			red:  []oracle.Rule{oracle.OneLeader, oracle.DeadlineFromSend, trace.Followed},
			play: deleted,
		},
		{
			number: 4, fault: "a leader replaced while it slept, its successor cut off", bug: bugBlindRelease, times: 2, part: withoutHeir,
			red: []oracle.Rule{oracle.OneLeader, trace.Followed},
			play: func(s *stage) {
				first := s.alive()
				s.stop(first.Who)
				second := s.leader(first.Who)
				s.awaitOf(second.Who, history.Extended)
				s.blackHole(second.Who)
				s.wake(first.Who)
				s.await("a third term", func(e history.Event) bool {
					return e.Kind == history.Elected && e.Who != second.Who
				})
				s.pass(s.ttl)
			},
		},
		{
			// The record that nobody knows is to last longer than a busy machine is slow.
			number: 24, fault: "answer to a create lost", bug: bugNewNonce, times: 10, candidates: 2, part: withoutHeir,
			red: []oracle.Rule{oracle.LeaderInTime, trace.Followed},
			play: func(s *stage) {
				first := s.alive()
				s.tell(s.others(first.Who)[0], "fault create dropreply 1")
				s.pass(s.ttl / 5) // it has to hear that before it creates
				s.due(first.Who, s.release()+s.ttl/3, "its end")
				s.tell(first.Who, "close")
				s.leader(first.Who)
			},
		},
		{
			number: 1, fault: "leader killed", bug: bugDeafWatch, part: withoutHeir,
			red:    []oracle.Rule{oracle.LeaderInTime},
			silent: []oracle.Rule{oracle.ReleasedMeansStopped},
			play: func(s *stage) {
				first := s.alive()
				s.due(first.Who, s.crash(), "SIGKILL")
				s.kill(first.Who)
				s.pass(2*s.takeover() + s.ttl)
			},
		},
		{
			// Its lease ends while the record is found there again and again.
			number: 20, fault: "keep-alives lost, then a cut", bug: bugTxnAlone, times: 4, only: and(onEtcd, ownExpiry),
			red: []oracle.Rule{oracle.OneLeader},
			play: func(s *stage) {
				first := s.alive()
				s.fault("keep-alives are lost")
				s.tell(first.Who, "unkeep")
				s.pass(s.ttl * 3 / 4)
				s.blackHole(first.Who)
				s.leader(first.Who)
				s.awaitOf(first.Who, history.Ended)
			},
		},
		{
			number: 24, fault: "create comes late when its campaign is over", bug: bugOpenLease, candidates: 2, short: true,
			only: and(onEtcd, ownExpiry), part: both(withoutHeir, surround(3)),
			red:  []oracle.Rule{oracle.LeaderInTime},
			play: orphan,
		},
		{
			number: 8, fault: "leader closed", bug: bugUnasked,
			red: []oracle.Rule{trace.Followed},
			play: func(s *stage) {
				s.alive()
				s.pass(s.ttl)
			},
		},
		{
			number: 8, fault: "leader closed", bug: bugSwallowed,
			red:    []oracle.Rule{trace.Followed},
			silent: []oracle.Rule{oracle.ReleasedMeansStopped},
			play: func(s *stage) {
				first := s.alive()
				s.tell(first.Who, "close")
				s.leader(first.Who)
			},
		},
		{
			number: 15, fault: "leader cut off, and scraped", bug: bugStaleGauge, part: withoutHeir,
			red:  []oracle.Rule{oracle.ScrapesInTime, trueAlarms},
			play: cutOffForLong,
		},
		{
			number: 15, fault: "leader cut off, and asked", bug: bugCachedRole, part: withoutHeir,
			red:  []oracle.Rule{oracle.AnswersInTime},
			play: cutOffForLong,
		},
	}
}

// cutOffForLong is a play in which a leader hears nothing of the next one.
func cutOffForLong(s *stage) {
	first := s.alive()
	s.blackHole(first.Who)
	s.leader(first.Who)
	s.awaitOf(first.Who, history.Ended)
	s.pass(2 * s.ttl)
}

// deleted is a play in which an operator deletes the leader's record.
func deleted(s *stage) {
	first := s.alive()
	s.interfered(s.ttl*2/3, "the record is deleted")
	s.erase()
	s.await("another term", func(e history.Event) bool {
		return e.Kind == history.Elected && e.Token != first.Token
	})
	s.pass(s.ttl)
}

// orphan is a play in which a create is carried out late, and nobody of the process that has
// sent it stands any more. Its neighbours keep alive what they share a lease with.
func orphan(s *stage) {
	first := s.alive()
	other := s.others(first.Who)[0]
	s.surrounded(other, 0)
	s.fault("the creates of " + other + " are lost")
	s.tell(other, "uncreate")
	s.tell(first.Who, "close")
	s.await("a create is lost", func(e history.Event) bool {
		return e.Who == other && e.Kind == history.Answered && e.Op == history.OpCreate && e.Result == history.Unknown
	})
	s.tell(other, "quit")
	s.awaitOf(other, gaveUp)
	s.tell(other, "arrive")
	require.Eventually(s.t, func() bool {
		rec, err := s.store.Get(s.t.Context(), s.name)
		return err == nil && strings.HasPrefix(rec.Signature, other+"/")
	}, patience, 10*time.Millisecond, "the create does not arrive")
	s.healed("the first of them arrives")
	s.due("", 2*s.life.Max, "a create came late")
	s.again(first.Who)
	s.pass(2*s.life.Max + s.slack(s.takeover()) + s.ttl)
}

// TestPlantedBugsAreCaught shows on a real server that the rules see what they
// are there to see.
func TestPlantedBugsAreCaught(t *testing.T) {
	for _, c := range columns() {
		if c.name != "redis" && c.name != "etcd" && c.name != kindPaxos {
			continue
		}
		common := sync.OnceValue(func() *servers { return c.common(t) })
		for _, r := range planted() {
			if r.only != nil && r.only(c) != "" || c.name != "redis" && !*full && !r.short {
				continue
			}
			r = r.in(c)
			r.part = both(quietly, r.part)
			t.Run(c.name+"/"+r.bug, func(t *testing.T) {
				t.Parallel()
				r := r
				r.without = "a library that lacks the bug"
				play(t, c, r, common)
			})
			t.Run(c.name+"/not "+r.bug, func(t *testing.T) {
				t.Parallel()
				r := r
				r.bug, r.red, r.control = "", nil, true
				play(t, c, r, common)
			})
		}
	}
}

// What no simulation shows has no planted bug there; see package planted.
func TestEachRuleThatNeedsRealProcessesHasAPlantedBug(t *testing.T) {
	promise := func(rule oracle.Rule) string { return rule(oracle.Evidence{}).Promise }
	simulated, found := map[string]bool{}, map[string]bool{}
	for _, rule := range oracle.All() {
		simulated[promise(rule)] = true
	}
	for _, r := range planted() {
		for _, rule := range r.red {
			found[promise(rule)] = true
		}
	}
	for _, rule := range slices.Concat(always(), oracle.Asked()) {
		require.True(t, simulated[promise(rule)] || found[promise(rule)], "no planted bug for %q", promise(rule))
	}
}
