//go:build linux

package faults

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// The candidates of two releases: their names begin with one of these.
const (
	newOnes  = "new"  // of this version
	oldOnes  = "old"  // of the last release, with the succession that is this one's default
	bareOnes = "bare" // of that release, with what was its default
)

// releasesTTL is so long that a busy machine loses few answers.
const releasesTTL = 2 * time.Second

// TestCandidatesOfTwoReleasesKeepThePromises is a rollout, and back: candidates of this
// version and of the last release (see -faults.old) stand in one election. In the short choice it is
// played on each kind of store, and with fewer ends of terms.
func TestCandidatesOfTwoReleasesKeepThePromises(t *testing.T) {
	oldRelease(t)
	for _, c := range columns() {
		if *only != "" && *only != c.name || !*full && !slices.Contains(rolledOut(), c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, c, releases(c).in(c), func() *servers { return c.common(t) })
		})
	}
}

// rolledOut are the stores of the short choice.
func rolledOut() []string {
	return []string{"file", "etcd", "consul", "redis", "sqlite", "postgres", "mariadb", kindPaxos}
}

// releases are a row that is played beside the table: in both choices, and on all stores
// at once.
func releases(c column) row {
	return row{
		number: 55, fault: "candidates of two releases in one election",
		times:    int(max(1, releasesTTL/c.ttl)),
		cast:     []string{oldOnes + "-1", newOnes + "-1"},
		must:     []oracle.Rule{oracle.LeaderInTime, oracle.SleepersNotice, handedBothWays},
		requests: 2 * usual, // those whose links are put right begin anew
		prepare: func(s *stage, who string, cmd *exec.Cmd) {
			if releaseOf(who) != newOnes {
				cmd.Path = oldRelease(s.t)
			}
		},
		asked: func(who string) bool { return releaseOf(who) == newOnes },
		part:  func(p *part) { p.Quiet = p.Store == kindSQLite }, // see stopAndReplace
		peers: func(r *row) { r.servers = startMixedPeers },
		play:  rollOut,
	}
}

// releaseOf returns which release a candidate, by its name or signature, is of.
func releaseOf(who string) string {
	release, _, _ := strings.Cut(who, "-")
	return release
}

// rollOut has leaders of both releases end in every way, while others of both wait.
func rollOut(s *stage) {
	for range 4 {
		first := s.alive()
		s.awaitHeir(s.others(first.Who)[0])
		s.resign(first.Who)
		s.leader(first.Who)
	}
	s.enter(oldOnes+"-2", bareOnes+"-1", newOnes+"-2")
	leaders := []string{oldOnes, newOnes}
	if *full {
		leaders = append(leaders, bareOnes)
	}
	for _, release := range leaders {
		for _, end := range s.ends() {
			end(s, s.bring(release))
		}
	}
	s.t.Logf("hand-overs: %v", handOvers(s.events().Events))
}

// startMixedPeers starts members of which one is of the other release.
func startMixedPeers(t testing.TB, _ column) *servers {
	return startPeersOf(t, []string{"", oldRelease(t), ""}, upTo(time.Minute), true)
}

// ends are the ways in which a term ends.
func (s *stage) ends() []func(*stage, history.Stretch) {
	all := []func(*stage, history.Stretch){killAndReplace, stopAndReplace}
	if *full {
		all = append(all, closeAndReplace, func(s *stage, first history.Stretch) { s.resign(first.Who) })
	}
	if *full && s.col.nodes > 0 {
		all = append(all, loseAndReplace)
	}
	return all
}

func killAndReplace(s *stage, first history.Stretch) {
	s.due(first.Who, s.takeover(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who)
	s.again(first.Who)
}

// stopAndReplace stops a leader at any moment, but not one that may have the write lock of
// SQLite, for which all others would wait.
func stopAndReplace(s *stage, first history.Stretch) {
	if s.col.kind == kindSQLite {
		s.tell(first.Who, "freeze refresh after")
		asleep := s.asleep(first.Who)
		s.note(history.Event{At: asleep.At, Kind: history.Due, Who: first.Who, Within: s.takeover(), Text: "SIGSTOP"})
	} else {
		s.due(first.Who, s.takeover(), "SIGSTOP")
		s.stop(first.Who)
	}
	s.leader(first.Who)
	s.pass(s.ttl)
	s.wake(first.Who)
	s.awaitOf(first.Who, history.Ended)
}

func closeAndReplace(s *stage, first history.Stretch) {
	s.due(first.Who, s.release(), "its end")
	s.tell(first.Who, "close")
	s.leader(first.Who)
	s.again(first.Who)
}

func loseAndReplace(s *stage, first history.Stretch) {
	s.due(first.Who, s.takeover(), "a black hole")
	s.blackHole(first.Who)
	s.leader(first.Who)
	s.pass(s.ttl)
	s.heal(first.Who)
}

// resign has a leader resign, and waits until it has.
func (s *stage) resign(who string) {
	s.t.Helper()
	s.tell(who, "resign")
	ended := s.awaitOf(who, history.Ended)
	s.note(history.Event{At: ended.At, Kind: history.Due, Within: s.release(), Text: "a resignation"})
}

// bring returns the leader, which is of the given release. If another leads, all of other
// releases leave until one of this leads.
func (s *stage) bring(release string) history.Stretch {
	s.t.Helper()
	first := s.alive()
	if releaseOf(first.Who) == release {
		return first
	}
	away := slices.DeleteFunc(s.others(), func(who string) bool { return releaseOf(who) == release })
	for _, who := range away {
		s.tell(who, "close")
	}
	for _, who := range away {
		s.trouble(s.actor(who).end(patience))
	}
	s.leader(away...)
	for _, who := range away {
		s.again(who)
	}
	return s.alive()
}

// awaitHeir waits until somebody is heir.
func (s *stage) awaitHeir(who string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		rec, err := s.store.Get(s.t.Context(), s.name+":"+history.Heir)
		return err == nil && strings.HasPrefix(rec.Signature, who+"/")
	}, s.takeover()+patience, 10*time.Millisecond, "%s does not become heir", who)
}

// handOvers counts the writes that handed the safe from one release to another.
func handOvers(events []history.Event) map[string]int {
	type call struct {
		who    string
		number uint64
	}
	asked, n := map[call]string{}, map[string]int{}
	for _, e := range events {
		c := call{e.Who, e.Call}
		switch {
		case e.Safe != "":
		case e.Kind == history.Sent && e.Next == "":
			delete(asked, c) // a process that was started again counts from one
		case e.Kind == history.Sent:
			asked[c] = releaseOf(e.Who) + " to " + releaseOf(e.Next)
		case e.Kind == history.Answered && e.Result == history.OK && asked[c] != "":
			n[asked[c]]++
		}
	}
	return n
}

// handedBothWays is the rule that each release has handed the safe to the other.
func handedBothWays(e oracle.Evidence) oracle.Finding {
	f := oracle.Finding{Promise: "hand-overs from each release to the other", Verdict: oracle.Silent}
	n := handOvers(e.Whole.Events)
	f.Detail = fmt.Sprint(n)
	up, down := n[oldOnes+" to "+newOnes], n[newOnes+" to "+oldOnes]
	if up > 0 && down > 0 {
		f.Verdict, f.Count = oracle.Kept, up+down
	}
	return f
}
