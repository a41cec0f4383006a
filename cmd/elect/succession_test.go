//go:build unix

package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
	"github.com/electkv/election/internal/testenv"
)

// eachStore runs a test on a directory and on real servers.
func eachStore(t *testing.T, test func(t *testing.T, p *place)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel() // mostly it waits
		test(t, newPlace(t))
	})
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.store = strings.Replace(url, "elect-test", "elect-test-"+strings.ToLower(rand.Text()), 1)
			test(t, p)
		})
	}
}

// stand starts a candidate that notes its process id as child-ID, and waits until
// its log has a word. Its grace is what a shell may take to stop on a busy machine, and its TTL
// leaves seven seconds to hand over.
func (p *place) stand(id, word string, flags ...string) *proc {
	p.t.Helper()
	e := p.run(drains, append([]string{"--id", id, "--ttl", "30s", "--grace", "5s"}, flags...)...)
	e.says(p.t, word)
	return e
}

// drains notes its process id, and takes a while to stop when it is told to.
const drains = `trap 'echo >"$1/told-$ELECTION_ID"; sleep 0.5; echo >"$1/stopped-$ELECTION_ID"; exit 0' TERM
echo $$ >"$1/child-$ELECTION_ID"; while :; do sleep 0.05; done`

// says waits until elect's log has a text.
func (p *proc) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, text, func() bool { return strings.Contains(p.err.String(), text) })
}

// status returns what status prints for "job", as JSON.
func (p *place) status() snapshot.State {
	p.t.Helper()
	_, stdout, stderr := finish(p.t, "status", "--store", p.store, "-o", "json", "job")
	require.Empty(p.t, stderr)
	var s snapshot.State
	require.NoError(p.t, json.Unmarshal([]byte(stdout), &s), stdout)
	return s
}

// next waits until somebody is heir, and returns who.
func (p *place) next() string {
	p.t.Helper()
	id := ""
	eventually(p.t, "an heir", func() bool {
		s := p.status()
		if s.Heir != nil && s.Heir.ID != s.ID { // who was just elected gives it up
			id = s.Heir.ID
		}
		return id != ""
	})
	return id
}

const (
	isLeader = " elected "
	isHeir   = " heir "
	isBehind = " safe=heir heir=" // it waits for the place of who is heir
)

func TestALeaderThatEndsHandsOverToItsHeirWhenItsCommandIsDead(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		anna := p.stand("anna", isLeader, "--succession", "first")
		child := p.pid("child-anna")
		ben := p.stand("ben", isHeir, "--succession", "first")
		w := start(t, "watch", "--store", p.store, "-o", "json", "job")
		eventually(t, "the watch", func() bool { return len(states(t, w.out.String())) == 1 })

		anna.send(t, syscall.SIGTERM)
		p.pid("child-ben")
		require.True(t, p.has("stopped-anna"))
		require.False(t, alive(child))
		require.Zero(t, anna.status(t))
		ben.says(t, isLeader)
		eventually(t, "ben is seen to lead", func() bool { return strings.Contains(w.out.String(), `"id":"ben"`) })
		seen := states(t, w.out.String())
		require.Len(t, seen, 2, "it was never vacant")
		require.Equal(t, "anna", seen[0].ID)
		require.Equal(t, "ben", seen[1].ID)
		require.Greater(t, seen[1].Token, seen[0].Token)
	})
}

func TestResignReturnsWhenTheCommandIsDeadAndSaysWhoLeads(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		anna := p.stand("anna", isLeader, "--succession", "first")
		child := p.pid("child-anna")
		p.stand("ben", isHeir, "--succession", "first")

		status, stdout, stderr := finish(t, "resign", "--store", p.store, "job")
		require.Zero(t, status, stderr)
		require.True(t, p.has("stopped-anna"))
		require.False(t, alive(child))
		require.Regexp(t, `^job: ben leads, token \d+\n$`, stdout)
		p.pid("child-ben")
		anna.says(t, isHeir) // it goes on as a candidate
	})
}

func TestResignNeedsNoSuccession(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.stand("anna", isLeader)
	child := p.pid("child-anna")
	before, _ := p.record()
	status, stdout, stderr := finish(t, "resign", "--store", p.store, "-o", "json", "job")
	require.Zero(t, status, stderr)
	require.True(t, p.has("stopped-anna"))
	require.False(t, alive(child))
	after := states(t, stdout)
	require.Len(t, after, 1)
	require.Equal(t, "anna", after[0].ID, "it was waited for: it campaigns again")
	require.Greater(t, after[0].Token, before.Token)
	require.True(t, alive(p.pidAfter("child-anna", child)))
}

func TestAResignedTermIsNoLossToRunOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`trap 'exit 7' TERM; `+heed, "--once")
	p.pid("child")
	status, stdout, stderr := finish(t, "resign", "--store", p.store, "job")
	require.Zero(t, status, stderr)
	require.Equal(t, "job: nobody leads\n", stdout)
	require.Equal(t, 7, e.status(t))
}

func TestTransferMakesACandidateTheLeaderThatWasNotNext(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		p.stand("anna", isLeader, "--succession", "rank", "--rank", "3")
		child := p.pid("child-anna")
		p.stand("ben", isHeir, "--succession", "rank", "--rank", "2")
		p.stand("cleo", isBehind, "--succession", "rank", "--rank", "1")
		require.Equal(t, "ben", p.next())

		status, stdout, stderr := finish(t, "transfer", "--store", p.store, "job", "--to", "cleo")
		require.Zero(t, status, stderr)
		require.True(t, p.has("stopped-anna"))
		require.False(t, alive(child))
		require.False(t, p.has("child-ben"))
		require.Regexp(t, `^job: cleo leads, token \d+\n$`, stdout)
		p.pid("child-cleo")
	})
}

func TestTransferToWhomLeadsAlreadyDoesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.stand("anna", isLeader)
	rec, _ := p.record()
	status, stdout, stderr := finish(t, "transfer", "--store", p.store, "--to", "anna", "job")
	require.Zero(t, status, stderr)
	require.Equal(t, fmt.Sprintf("job: anna leads, token %d\n", rec.Token), stdout)
	require.False(t, p.has("told-anna"))
}

func TestTransferToNobodyKnownLeavesTheLeaderAndSaysWhoIsNext(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		for ttl := 4 * time.Second; ; ttl *= 2 {
			p.notes = t.TempDir()
			flags := []string{"--succession", "first", "--ttl", ttl.String(), "--grace", "1s"}
			anna, ben := p.stand("anna", isLeader, flags...), p.stand("ben", "", flags...)
			p.next()
			before := p.status()
			status, stdout, stderr := finish(t, "transfer", "--store", p.store, "job", "--to", "nina")
			next, after := p.next(), p.status()
			if (before.ID != "anna" || after.Token != before.Token) && ttl < 20*time.Second {
				for _, e := range []*proc{ben, anna} {
					e.send(t, syscall.SIGTERM)
					e.status(t)
				}
				continue // on a busy machine a term may be over before anything is asked for
			}
			require.Equal(t, 1, status)
			require.Empty(t, stdout)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.Contains(t, stderr, `"nina"`)
			require.Regexp(t, `stand\?\)(; the heir is "ben")?\n$`, stderr) // it comes back when the call is over
			require.Equal(t, before.Token, after.Token)
			require.False(t, p.has("told-anna"))
			require.Equal(t, "ben", next)
			return
		}
	})
}

func TestTransferWithoutASuccessionSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.stand("anna", isLeader, "--succession", "none")
	p.stand("ben", "waiting", "--succession", "none")
	status, _, stderr := finish(t, "transfer", "--store", p.store, "job", "--to", "ben")
	require.Equal(t, 125, status)
	require.Equal(t, "elect: the leader of job has no heir, so it cannot hand over to a chosen candidate: leave out --succession none (library: Options.NoHeir), or where candidates wait in line with an old lock add --succession first, for every candidate\n", stderr)
	require.False(t, p.has("told-anna"))
}

func TestALockOfOthersIsAskedForNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(strings.TrimPrefix(p.store, "file://"), "safes", "job")
	require.NoError(t, os.WriteFile(file, []byte("theirs"), 0o600))
	for _, args := range [][]string{{"resign", "job"}, {"transfer", "job", "--to", "anna"}} {
		status, _, stderr := finish(t, append(args, "--store", p.store)...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, `"job" is held by a lock that this library did not write`)
		require.Contains(t, stderr, "; elect doctor job tells what it looks like\n")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(text))
}

func TestARequestIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	t.Run("and no leader heeded it", func(t *testing.T) {
		p := newPlace(t)
		c, err := election.New(p.kv, "job", &election.Options{ID: "deaf", TTL: time.Hour})
		require.NoError(t, err)
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		for timeout := time.Second; ; timeout *= 2 {
			status, stdout, stderr := finish(t, "resign", "--store", p.store, "--timeout", timeout.String(), "job")
			require.Equal(t, 125, status)
			require.Empty(t, stdout)
			if !strings.Contains(stderr, "no answer yet") && timeout < 10*time.Second {
				continue // on a busy machine it may not have been asked yet
			}
			require.Equal(t, `elect: request to "deaf", which leads "job": no answer yet: context deadline exceeded: --timeout `+timeout.String()+" is over\n", stderr)
			break
		}
		require.NoError(t, term.Err())
		require.NoError(t, term.Resign(t.Context()))
	})
	t.Run("and the work has not stopped", func(t *testing.T) {
		for timeout := time.Second; ; timeout *= 2 {
			p := newPlace(t)
			p.run(`trap 'echo >"$1/told"' TERM; `+heed, "--ttl", "5m", "--grace", "1m", "--id", "busy")
			child := p.pid("child")
			status, _, stderr := finish(t, "resign", "--store", p.store, "--timeout", timeout.String(), "job")
			require.Equal(t, 125, status)
			unasked := strings.Contains(stderr, "no answer yet") || strings.Contains(stderr, "cannot tell whether the request was made")
			if unasked && timeout < 10*time.Second {
				continue // on a busy machine it may not have been asked yet
			}
			require.Contains(t, stderr, `"busy", which leads "job": it has agreed, and its work has not stopped yet: `)
			p.note("told")
			_, held := p.record()
			require.True(t, held || !alive(child), "the record was given up before the command was dead")
			return
		}
	})
}

func TestAHigherRankTakesOverWhenItHasBeenHeirForLong(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		anna := p.stand("anna", isLeader, "--succession", "rank", "--rank", "1", "--ttl", "1m", "--grace", "20s", "--stability", "1s")
		child := p.pid("child-anna")
		p.stand("ben", isHeir, "--succession", "rank", "--rank", "2", "--ttl", "1m", "--grace", "20s", "--stability", "1s")
		p.pid("child-ben")
		require.True(t, p.has("stopped-anna"))
		require.False(t, alive(child))
		anna.says(t, `gives way to \"ben\"`)
	})
}

func TestTheLeadershipGoesRoundTheRing(t *testing.T) {
	t.Parallel()
	for term := 6 * time.Second; ; term *= 2 {
		led := ring(t, term)
		if slices.Equal([]string{"a", "b", "c", "a"}, led) {
			return
		}
		require.Less(t, term, 20*time.Second, "%v led", led) // else a busy machine may have missed a turn
	}
}

// ring has three stand, and returns who led first, in terms of that length.
func ring(t *testing.T, term time.Duration) (led []string) {
	t.Helper()
	p := newPlace(t)
	w := start(t, "watch", "--store", p.store, "-o", "json", "job")
	flags := []string{"--succession", "ring", "--ttl", term.String(), "--grace", "2s", "--max-term", term.String()}
	for _, id := range []string{"a", "b", "c"} {
		e := p.stand(id, "", flags...)
		defer e.send(t, syscall.SIGKILL)
		if id == "a" {
			e.says(t, isLeader)
		}
	}
	require.Eventually(t, func() bool {
		led = led[:0]
		for _, s := range states(t, w.out.String()) {
			if s.ID != "" {
				led = append(led, s.ID)
			}
		}
		return len(led) >= 4
	}, 2*time.Minute, 50*time.Millisecond)
	return led[:4]
}

func TestTheLeaderListsWhichCandidatesAreNext(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.stand("anna", isLeader, "--succession", "list", "--heirs", "cleo, ben")
	p.stand("ben", isHeir, "--succession", "list")
	p.stand("cleo", isHeir, "--succession", "list")
	require.Equal(t, "cleo", p.next())
	require.Equal(t, []string{"cleo", "ben"}, p.status().Heirs)
	_, table, _ := finish(t, "status", "--store", p.store, "job", "other")
	require.Regexp(t, `^NAME .* HEIR +HEIRS\njob .* cleo \(.*\)  cleo,ben\nother .* -\n$`, table)
	status, stdout, stderr := finish(t, "resign", "--store", p.store, "job")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "job: cleo leads")
	eventually(t, "ben is next", func() bool { return p.next() == "ben" }) // the list is handed on
}

func TestStatusTellsOfTheHeirAndOfRanksAndAges(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		begun := time.Now().Truncate(time.Millisecond)
		p.stand("anna", isLeader, "--succession", "rank", "--rank", "9")
		p.stand("ben", isHeir, "--succession", "rank", "--rank", "3", "--value", "host-7")
		require.Equal(t, "ben", p.next())
		s := p.status()
		require.Equal(t, "anna", s.ID)
		require.Equal(t, 9, *s.Rank)
		require.WithinRange(t, *s.Since, begun, time.Now())
		require.Equal(t, 3, s.Heir.Rank)
		require.Equal(t, "host-7", s.Heir.Value)
		require.WithinRange(t, s.Heir.Since, begun, time.Now())

		status, stdout, stderr := finish(t, "status", "--store", p.store, "job", "other")
		require.Equal(t, 1, status)
		require.Empty(t, stderr)
		require.Regexp(t, ``+
			`^NAME   STATE   LEADER  TOKEN +VALUE  AGE +RANK  HEIR\n`+
			`job    leader  anna    \d+ +-      \d+m?\d*s +9     ben \(rank 3, \d+m?\d*s\)\n`+
			`other  vacant  -       - +-      - +-     -\n$`, stdout)
	})
}

func TestStatusSaysThatItCannotTellWhoIsHeirAndFailsNotForIt(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t, "--user", "alice", "on", ">pw", "~job", "~{job}:*", "&*", "+@all")
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	require.NoError(t, admin.Set(t.Context(), "job", "theirs", 0).Err())
	status, stdout, stderr := finish(t, "status", "--store", "redis://alice:pw@"+server.Addr(), "-o", "json", "job")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, `"state":"foreign"`)
	require.Contains(t, stderr, "elect: job: cannot tell who is heir: ")
	require.NotContains(t, stdout, `"heir"`)
}

func TestDoctorSaysThatANameIsReserved(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.stand("anna", isLeader, "--succession", "first")
	p.stand("ben", isHeir, "--succession", "first")
	status, stdout, _ := finish(t, "doctor", "--store", p.store, "job:heir", "job:request", "job")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAIL  name job:heir: is kept for the heir of the election \"job\"\n")
	require.Contains(t, stdout, "FAIL  name job:request: is kept for requests to the leader of the election \"job\"\n")
	require.True(t, strings.HasSuffix(stdout, "OK    name job: somebody leads\n"), stdout)
}
