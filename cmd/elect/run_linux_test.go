package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
)

// scatter starts descendants that get away: in a session of their own, with the
// parent gone, deaf to SIGTERM.
const scatter = `trap '' TERM
setsid sh -c 'echo $$ >"$1/session"; exec sleep 1000' sh "$1" &
(setsid sh -c 'setsid sh -c "echo \$\$ >\"$1/daemon\"; exec sleep 1000" sh "$1" & exit 0' sh "$1" &)
`

func TestRunKillsDescendantsThatLeftTheGroup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(t *testing.T, p *place, e *proc)
	}{
		{"when the record is deleted", func(t *testing.T, p *place, e *proc) { p.remove() }},
		{"when elect is killed", func(t *testing.T, p *place, e *proc) { e.send(t, syscall.SIGKILL) }},
		{"when elect is stopped", func(t *testing.T, p *place, e *proc) { e.send(t, syscall.SIGSTOP) }},
		{"when the guard is killed", func(t *testing.T, p *place, e *proc) {
			require.NoError(t, syscall.Kill(guardOf(t, e), syscall.SIGKILL))
		}},
		{"when the guard is stopped and the record deleted", func(t *testing.T, p *place, e *proc) {
			require.NoError(t, syscall.Kill(guardOf(t, e), syscall.SIGSTOP))
			p.remove()
		}},
		{"when the command ends", func(t *testing.T, p *place, e *proc) {
			require.NoError(t, syscall.Kill(p.pid("child"), syscall.SIGKILL))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			e := p.run(scatter+stay, "--ttl", "10s", "--grace", "300ms", "--once")
			pids := []int{p.pid("child"), p.pid("session"), p.pid("daemon")}
			guard := guardOf(t, e)
			before, held := p.record()
			require.True(t, held)
			c.end(t, p, e)
			for _, pid := range append(pids, guard) {
				eventually(t, "process "+strconv.Itoa(pid)+" ends", func() bool { return !alive(pid) })
			}
			if now, held := p.record(); held {
				require.True(t, now.Owns(before), "somebody else leads already")
			}
		})
	}
}

// guardOf returns the process id of elect's only child.
func guardOf(t *testing.T, e *proc) int {
	t.Helper()
	children := childrenOf(t, e.Process.Pid)
	require.Len(t, children, 1)
	return children[0]
}

// childrenOf returns the processes whose parent is pid, zombies too.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	children := []int{}
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(entry.Name())
			require.NoError(t, err)
			children = append(children, child)
		}
	}
	return children
}

func TestRunsCommandDiesSoonAfterElectDoesNotOnlyAtTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`trap '' TERM; `+stay, "--ttl", "5m", "--grace", "100ms")
	child := p.pid("child")
	e.send(t, syscall.SIGKILL)
	eventually(t, "the command dies", func() bool { return !alive(child) })
}

func TestRunsCommandDiesWithItsGuardEvenIfElectCannotHelp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`trap '' TERM; `+stay, "--ttl", "5m")
	child := p.pid("child")
	guard := guardOf(t, e)
	e.send(t, syscall.SIGSTOP)
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	eventually(t, "the command dies", func() bool { return !alive(child) })
}

// As after docker pause, or when the host slept.
func TestRunCampaignsAgainWhenAllWereFrozenBeyondTheTermAndTheGrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(stay, "--ttl", "4s", "--grace", "200ms")
	child, guard := p.pid("child"), guardOf(t, e)
	for _, pid := range []int{child, guard, e.Process.Pid} { // nobody ends whom a stopped process was to stop
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	time.Sleep(6 * time.Second) // the term, the grace, and the patience with the guard
	e.send(t, syscall.SIGCONT)
	require.NotEqual(t, child, p.pidAfter("child", child), "elect leads again")
	require.False(t, alive(child), "two commands at once")
	e.send(t, syscall.SIGTERM)
	e.status(t)
}

// tally appends the token and a clock to one log, for as long as it lives, and
// is deaf to SIGTERM.
const tally = `trap '' TERM; echo $$ >"$1/child-$ELECTION_ID"
while :; do read up rest </proc/uptime; echo "$ELECTION_TOKEN $up" >>"$1/log"; sleep 0.01; done`

// clockwork notes the time for as long as it lives, and is deaf to SIGTERM.
const clockwork = `trap '' TERM; echo $$ >"$1/child"
while :; do read up rest </proc/uptime; echo "$up" >>"$1/signs"; sleep 0.01; done`

// lastSign returns when a clockwork was alive last.
func (p *place) lastSign() time.Duration {
	p.t.Helper()
	signs := strings.Fields(p.note("signs"))
	seconds, err := strconv.ParseFloat(signs[len(signs)-1], 64)
	require.NoError(p.t, err)
	return time.Duration(seconds * float64(time.Second))
}

func TestRunStopsTheCommandBeforeTheTTLIfElectIsStopped(t *testing.T) {
	t.Parallel()
	for ttl := 4 * time.Second; ; ttl *= 2 { // on a busy machine the guard may be late
		p := newPlace(t)
		e := p.run(clockwork, "--ttl", ttl.String(), "--grace", (ttl / 4).String())
		child := p.pid("child")
		e.send(t, syscall.SIGSTOP)
		stopped := boottime.Now()
		eventually(t, "the command is killed", func() bool { return !alive(child) })
		if p.lastSign()-stopped >= ttl {
			require.Less(t, ttl, 12*time.Second, "the command ran for %v after elect was stopped", p.lastSign()-stopped)
			continue
		}
		e.send(t, syscall.SIGCONT)
		next := p.pidAfter("child", child)
		require.True(t, alive(next), "it leads again")
		return
	}
}

func TestRunLeavesNoTimeInWhichTwoCommandsRun(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			for ttl := 3 * time.Second; ; ttl *= 2 {
				p := newPlace(t)
				flags := []string{"--ttl", ttl.String(), "--grace", (ttl / 3).String()}
				first := p.run(tally, append(flags, "--id", "one")...)
				child := p.pid("child-one")
				second := p.run(tally, append(flags, "--id", "two")...)
				eventually(t, "the second waits, or leads", func() bool {
					return strings.Contains(second.err.String(), "waiting") || p.has("child-two")
				})
				unasked := p.has("child-two")
				first.send(t, sig)
				p.pid("child-two")
				both := time.Now()
				overlap := alive(child)
				eventually(t, "the first command ends", func() bool { return !alive(child) })
				t.Logf("TTL %v: two commands at once: %v, for %v", ttl, overlap, time.Since(both))
				time.Sleep(200 * time.Millisecond)
				log := p.note("log")
				if (unasked || overlap || len(tokens(t, log)) > 2) && ttl < 12*time.Second {
					second.send(t, syscall.SIGTERM)
					continue // on a busy machine a guard may be late, and a term be lost
				}
				require.False(t, unasked, "the second led before the first was stopped")
				require.False(t, overlap, "two commands at once")
				requireOrder(t, log, 2)
				return
			}
		})
	}
}

func TestRunKeepsTheRecordUntilACommandDeafToSIGTERMIsDead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(scatter+stay, "--ttl", "1m", "--grace", "1s")
	daemon := p.pid("daemon")
	require.NoError(t, syscall.Kill(p.pid("child"), syscall.SIGKILL))
	for alive(daemon) {
		_, held := p.record()
		require.True(t, held || !alive(daemon), "the record was given up while a descendant lived")
		time.Sleep(5 * time.Millisecond)
	}
	require.Equal(t, 137, e.status(t))
}

func TestRunLeavesNothingOfACommandThatForksWithoutEnd(t *testing.T) {
	p, id := newPlace(t), "forker-"+rand.Text() // these tests may run elsewhere on this machine
	const forks = `trap '' TERM; echo $$ >"$1/child"
spawn() { while [ ! -e "$1/over" ]; do sh -c 'trap "" TERM; sleep 0.02; (setsid sleep 60 >"$1/out" 2>&1 &)' & sleep 0.01; done; }
spawn "$1" & spawn "$1"`
	e := p.run(forks, "--ttl", "1m", "--grace", "200ms", "--once", "--id", id)
	p.pid("child")
	guard := guardOf(t, e)
	time.Sleep(300 * time.Millisecond)
	p.remove()
	removed := time.Now()
	status := e.status(t)
	require.NoError(t, os.WriteFile(filepath.Join(p.notes, "over"), nil, 0o600))
	require.Equal(t, 125, status)
	require.Less(t, time.Since(removed), 30*time.Second, "it has waited for them, and killed none")
	require.False(t, alive(guard))
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil {
			require.NotContains(t, string(environ), "ELECTION_ID="+id+"\x00", "process %s is left", entry.Name())
		}
	}
}
