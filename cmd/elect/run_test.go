//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stay notes the process id of the command, which goes on for long.
const stay = `echo $$ >"$1/child"; exec sleep 1000`

// heed is stay for a shell with traps, which are carried out after each short step, or for one that must
// not become another program. Steps cost processes, so it is for no others.
const heed = `echo $$ >"$1/child"; while :; do sleep 0.05; done`

func TestRunExitsWithTheStatusOfTheCommand(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 7":        7,
		"exit 125":      125,
		"kill -KILL $$": 137,
		"kill -TERM $$": 143,
	} {
		t.Run(script, func(t *testing.T) {
			p := newPlace(t)
			require.Equal(t, want, p.run(script).status(t))
			_, held := p.record()
			require.False(t, held, "the record was left behind")
		})
	}
}

func TestRunLogsHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run("exit 7")
	require.Equal(t, 7, e.status(t))
	require.Contains(t, e.err.String(), " COMMAND has ended status=7\n")
	e = p.run(`trap 'exit 3' TERM; ` + heed)
	p.pid("child")
	e.send(t, syscall.SIGTERM)
	require.Equal(t, 3, e.status(t))
	require.Contains(t, e.err.String(), " COMMAND has ended status=3\n")
}

func TestRunWarnsOfAStoreThatNobodyElseSees(t *testing.T) {
	t.Parallel()
	e := start(t, "run", "--store", "mem:", "job", "--", "true")
	require.Zero(t, e.status(t))
	require.Contains(t, e.err.String(), " warn: no other process sees this store")
	p := newPlace(t)
	e = p.run("true")
	require.Zero(t, e.status(t))
	require.NotContains(t, e.err.String(), "warn")
}

func TestRunTellsTheCommandWhatItLeads(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`echo "$ELECTION_NAME $ELECTION_ID $ELECTION_TTL $ELECTION_TOKEN"`, "--id", "me", "--ttl", "12s", "--grace", "1s")
	require.Zero(t, e.status(t))
	words := strings.Fields(e.out.String())
	require.Len(t, words, 4)
	require.Equal(t, []string{"job", "me", "12s"}, words[:3])
	token, err := strconv.ParseUint(words[3], 10, 64)
	require.NoError(t, err)
	require.NotZero(t, token)
}

func TestRunPassesStandardInputAndOutputOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := exec.Command(elect, "run", "--store", p.store, "job", "--", "sh", "-c", "cat; echo to-stderr >&2")
	cmd.Stdin = strings.NewReader("from stdin")
	e := startCommand(t, cmd)
	require.Zero(t, e.status(t))
	require.Equal(t, "from stdin", e.out.String())
	require.Contains(t, e.err.String(), "to-stderr\n")
}

func TestRunForwardsSignalsToTheCommandsGroup(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT, syscall.SIGALRM, syscall.SIGWINCH} {
		t.Run(sig.String(), func(t *testing.T) {
			p := newPlace(t)
			e := p.run(`trap 'exit 9' ` + strconv.Itoa(int(sig)) + `; ` + heed)
			p.pid("child")
			e.send(t, sig)
			require.Equal(t, 9, e.status(t))
		})
	}
}

func TestRunAfterSIGTERMWaitsForTheCommandThenFreesTheRecordThenExitsWithItsStatus(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel() // mostly it waits
			p := newPlace(t)
			// Longer than TTL and grace: a drain takes as long as it takes.
			e := p.run(`trap 'echo >"$1/told"; sleep 12; echo >"$1/drained"; exit 3' TERM INT; `+heed, "--ttl", "10s", "--grace", "300ms")
			p.pid("child")
			e.send(t, sig)
			p.note("told")
			for !p.has("drained") {
				_, held := p.record()
				require.True(t, held || p.has("drained"), "the record was given up before the command had stopped")
				time.Sleep(20 * time.Millisecond)
			}
			require.Equal(t, 3, e.status(t))
			_, held := p.record()
			require.False(t, held)
		})
	}
}

// Where the guard takes too long to kill the command, on a busy machine, it is killed itself: then the
// grace is longer in the next try.
func TestRunAfterASecondSIGTERMKillsTheCommandAfterTheGrace(t *testing.T) {
	t.Parallel()
	for grace := 500 * time.Millisecond; ; grace *= 2 {
		p := newPlace(t)
		e := p.run(`trap 'echo >"$1/told"' TERM; `+heed, "--grace", grace.String())
		child := p.pid("child")
		e.send(t, syscall.SIGTERM)
		p.note("told")
		time.Sleep(2 * grace)
		require.True(t, alive(child), "one SIGTERM is a request")
		e.send(t, syscall.SIGTERM)
		if e.killed(t, child, grace) {
			return
		}
	}
}

// killed reports whether elect ends since its guard has killed the command, which is dead. Otherwise
// the guard took too long for that with this grace, on a busy machine, and was killed itself.
func (p *proc) killed(t *testing.T, child int, grace time.Duration) bool {
	t.Helper()
	status := p.status(t)
	require.False(t, alive(child))
	if status == 137 {
		return true
	}
	require.Less(t, grace, 4*time.Second)
	require.Contains(t, p.err.String(), "the process that guards the command died: killed", "status %d", status)
	return false
}

func TestRunEndsTheWaitOnASignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(stay)
	p.pid("child")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		e := p.run(`echo >"$1/second"`)
		eventually(t, "it waits", func() bool { return strings.Contains(e.err.String(), "waiting") })
		e.send(t, sig)
		require.Equal(t, 128+int(sig), e.status(t))
	}
	require.False(t, p.has("second"))
}

// pidAfter waits until a note has another process id in it than before.
func (p *place) pidAfter(name string, before int) int {
	p.t.Helper()
	pid := before
	eventually(p.t, "another "+name, func() bool {
		pid = p.pid(name)
		return pid != before
	})
	return pid
}

func TestRunCampaignsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`echo "$ELECTION_TOKEN" >>"$1/tokens"; `+stay, "--ttl", "5m", "--grace", "500ms")
	first := p.pid("child")
	p.remove()
	second := p.pidAfter("child", first)
	require.False(t, alive(first), "the command of the lost term still runs")
	e.send(t, syscall.SIGTERM)
	require.Equal(t, 143, e.status(t))
	require.False(t, alive(second))
	requireOrder(t, p.note("tokens"), 2)
}

func TestRunOnceExitsAfterALoss(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	// The TTL is too long for the guard to stop the command of its own accord.
	e := p.run(`trap 'exit 0' TERM; `+heed, "--once", "--ttl", "5m")
	p.pid("child")
	p.remove()
	require.Equal(t, 125, e.status(t))
	require.Contains(t, e.err.String(), "elect: leadership lost: the record is gone or somebody else's; COMMAND was stopped\n")
}

// tokens returns the tokens of a log whose lines begin with one, without repetitions in a row.
func tokens(t *testing.T, log string) []uint64 {
	t.Helper()
	seen := []uint64{}
	for line := range strings.SplitSeq(log, "\n") {
		fields := strings.Fields(line)
		require.NotEmpty(t, fields)
		token, err := strconv.ParseUint(fields[0], 10, 64)
		require.NoError(t, err, line)
		if len(seen) == 0 || seen[len(seen)-1] != token {
			seen = append(seen, token)
		}
	}
	return seen
}

// requireOrder wants the log to have so many tokens, each larger than those
// before.
func requireOrder(t *testing.T, log string, terms int) {
	t.Helper()
	seen := tokens(t, log)
	require.Len(t, seen, terms, "the terms overlap, or one is missing: %v", seen)
	require.IsIncreasing(t, seen)
}
