package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// farewell notes that it ran, and for whom.
func (p *place) farewell() string {
	return `echo "$ELECTION_NAME $ELECTION_ID $ELECTION_TOKEN $ELECTION_TTL" >` + p.notes + `/farewell`
}

func TestRunOnLostRunsWhenTheCommandIsStoppedIsKilledOrFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		end    func(t *testing.T, p *place, e *proc)
	}{
		"the record is deleted": {script: stay, end: func(_ *testing.T, p *place, _ *proc) { p.remove() }},
		"deaf to SIGTERM":       {script: `trap '' TERM; ` + stay, end: func(_ *testing.T, p *place, _ *proc) { p.remove() }},
		"ends well when told":   {script: `trap 'exit 0' TERM; ` + heed, end: func(_ *testing.T, p *place, _ *proc) { p.remove() }},
		"elect is killed":       {script: stay, end: func(t *testing.T, _ *place, e *proc) { e.send(t, syscall.SIGKILL) }},
		"elect is stopped":      {script: stay, end: func(t *testing.T, _ *place, e *proc) { e.send(t, syscall.SIGSTOP) }},
		"elect gets SIGTERM":    {script: stay, end: func(t *testing.T, _ *place, e *proc) { e.send(t, syscall.SIGTERM) }},
		"the guard is killed": {script: stay, end: func(t *testing.T, _ *place, e *proc) {
			require.NoError(t, syscall.Kill(guardOf(t, e), syscall.SIGKILL))
		}},
		"the command fails": {script: `echo $$ >"$1/child"; read line <"$1/fifo"; exit 3`, end: func(t *testing.T, p *place, _ *proc) {
			require.NoError(t, syscall.Kill(p.pid("child"), syscall.SIGTERM))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			require.NoError(t, syscall.Mkfifo(p.notes+"/fifo", 0o600))
			e := p.run(c.script, "--id", "me", "--ttl", "20s", "--grace", "5s", "--once", "--on-lost", p.farewell())
			child := p.pid("child")
			rec, held := p.record()
			require.True(t, held)
			c.end(t, p, e)
			require.Equal(t, "job me "+strconv.FormatUint(rec.Token, 10)+" 20s", p.note("farewell"))
			eventually(t, "the command ends", func() bool { return !alive(child) })
		})
	}
}

func TestRunOnLostDoesNotRunWhenTheCommandEndsWell(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	require.Zero(t, p.run("true", "--on-lost", p.farewell()).status(t))
	require.False(t, p.has("farewell"))
	require.Equal(t, 126, p.run("exit 126", "--on-lost", p.farewell()).status(t))
	require.True(t, p.has("farewell"))
}

func TestRunOnLostIsDeadWithAllThatCameOfItBeforeAnotherLeads(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, e *proc){
		"elect is killed": func(t *testing.T, e *proc) { e.send(t, syscall.SIGKILL) },
		"the guard is killed": func(t *testing.T, e *proc) {
			require.NoError(t, syscall.Kill(guardOf(t, e), syscall.SIGKILL))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			onLost := `trap '' TERM; echo $$ >` + p.notes + `/cleaner
setsid sh -c 'echo $$ >` + p.notes + `/daemon; while :; do sleep 0.05; done' &
while :; do sleep 0.05; done`
			e := p.run(`trap '' TERM; `+stay, "--id", "one", "--ttl", "20s", "--grace", "5s", "--on-lost", onLost)
			child := p.pid("child")
			second := p.run(`echo $$ >"$1/second"; exec sleep 1000`, "--id", "two", "--ttl", "20s", "--grace", "5s")
			eventually(t, "the second waits", func() bool { return strings.Contains(second.err.String(), "waiting") })
			end(t, e)
			cleaner, daemon := p.pid("cleaner"), p.pid("daemon")
			p.pid("second")
			require.False(t, alive(child))
			require.False(t, alive(cleaner))
			require.False(t, alive(daemon))
		})
	}
}

// An --on-lost that is done does not keep the record for the rest of the grace.
func TestRunOnLostFreesTheRecordWhenItIsDone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin := time.Now()
	e := p.run("exit 3", "--ttl", "5m", "--grace", "1m", "--on-lost", p.farewell()+"; exit 4")
	require.Equal(t, 3, e.status(t))
	require.Less(t, time.Since(begin), time.Minute)
	require.True(t, p.has("farewell"))
	require.Contains(t, e.err.String(), `warn: the command of --on-lost has failed: what COMMAND started elsewhere may run on how="exit status 4"`)
	_, held := p.record()
	require.False(t, held)
}
