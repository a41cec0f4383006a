//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/order"
)

// promises are the lines of the demo's verdict if all is well.
var promises = []string{"one leader at a time", "tokens grow", "work only while leading", "a sleeper finds out", "a leader in time"}

// requireVerdict plays a demo to its end, and wants it to have kept everything. One that was
// late on a busy machine is played again; what makes it safe has to hold then too. Meanwhile
// somebody may look at it.
func requireVerdict(t *testing.T, tmp string, look func(p *proc), args ...string) *proc {
	t.Helper()
	for try := 1; ; try++ {
		p := startCommand(t, demoCommand(tmp, args...))
		if look != nil {
			look(p)
		}
		status := p.status(t)
		requireKept(t, "", p, promises[:3]...)
		if status != 0 && try < 4 && late(p) {
			forget(t, tmp)
			continue
		}
		require.Zero(t, status)
		requireKept(t, "", p, promises...)
		require.NotContains(t, p.out.String(), "BROKEN")
		for _, mark := range []string{"K", "S", "C", "█", "z"} {
			require.Contains(t, p.out.String(), mark)
		}
		return p
	}
}

func TestTheDemoOfEachOrderKeepsItsPromises(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	requireOrders(t, "", tmp, order.Names()[1:])
	requireEmpty(t, tmp)
	requireNoCandidates(t, tmp)
}

// requireOrders wants the demos of orders to keep everything. They are played side
// by side: they wait for most of their time. One that was late on a busy machine is
// played again; what makes it safe has to hold then too.
func requireOrders(t *testing.T, url, tmp string, orders []string) {
	t.Helper()
	for try := 1; len(orders) > 0; try++ {
		played := map[string]*proc{}
		for _, by := range orders {
			cmd := exec.Command(elect, "demo", by)
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "ELECT_STORE="+url)
			played[by] = startCommand(t, cmd)
		}
		orders = nil
		for by, p := range played {
			status := p.status(t)
			requireKept(t, by, p, promises[:3]...)
			require.NotContains(t, p.out.String(), "BROKEN  only the heir is elected", by)
			if status != 0 && try < 4 && late(p) {
				orders = append(orders, by)
				continue
			}
			require.Zero(t, status, by)
			requireKept(t, by, p, "only the heir is elected", "the right one is next", "handed over, never empty")
			require.NotContains(t, p.out.String(), "BROKEN", by)
			require.Contains(t, p.out.String(), "▒", by)
		}
		forget(t, tmp)
	}
}

func requireKept(t *testing.T, by string, p *proc, promises ...string) {
	t.Helper()
	for _, promise := range promises {
		require.Contains(t, p.out.String(), "kept    "+promise, by)
	}
}

// late reports whether a demo that broke a promise did so because a record was not refreshed in time,
// somebody led too late, or a leader had no time left to hand over and deleted its record.
func late(p *proc) bool {
	if strings.Contains(p.err.String(), "not refreshed in time") {
		return true
	}
	for line := range strings.Lines(p.out.String()) {
		inTime := strings.Contains(line, "promised within") || strings.Contains(line, "nobody led within") || strings.Contains(line, "the safe was empty for")
		if strings.Contains(line, "BROKEN") && !inTime {
			return false
		}
	}
	return true
}

// forget removes what demos have left that broke a promise.
func forget(t *testing.T, tmp string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(tmp, "elect-demo-*.ndjson"))
	require.NoError(t, err)
	for _, path := range left {
		require.NoError(t, os.Remove(path))
	}
}

// demoIn runs the demo with a directory of its own for temporary files.
func demoIn(t *testing.T, tmp string) *proc {
	t.Helper()
	return startCommand(t, demoCommand(tmp))
}

func demoCommand(tmp string, args ...string) *exec.Cmd {
	cmd := exec.Command(elect, append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "ELECT_STORE=")
	return cmd
}

func TestTheDemoKeepsItsPromisesOnTheFileStoreAndLeavesNothing(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	requireVerdict(t, tmp, nil)
	requireEmpty(t, tmp)
	requireNoCandidates(t, tmp)
}

func TestTheDemoLeavesNothingWhenInterrupted(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"LEADS", "is killed", "is put to sleep"} {
		t.Run(moment, func(t *testing.T) {
			tmp := t.TempDir()
			p := demoIn(t, tmp)
			eventually(t, moment, func() bool { return strings.Contains(p.err.String(), moment) })
			p.send(t, syscall.SIGINT)
			require.Equal(t, 130, p.status(t))
			requireEmpty(t, tmp)
			requireNoCandidates(t, tmp)
		})
	}
}

func TestTheDemoLeavesNoProcessWhenKilled(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"LEADS", "is put to sleep"} {
		t.Run(moment, func(t *testing.T) {
			tmp := t.TempDir()
			p := demoIn(t, tmp)
			eventually(t, moment, func() bool { return strings.Contains(p.err.String(), moment) })
			p.send(t, syscall.SIGKILL)
			eventually(t, "no candidate is left", func() bool { return len(candidates(t, tmp)) == 0 })
		})
	}
}

func TestTheDemoOnAStoreOfTheUsersLeavesItAsItWas(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	played := requireVerdict(t, t.TempDir(), nil, "--store", p.store, "--ttl", "2s")
	first, _, _ := strings.Cut(played.err.String(), "\n")
	require.Regexp(t, `^elect \S+: three candidates for `, first, "the version")
	dir := strings.TrimPrefix(p.store, "file://")
	requireEmpty(t, filepath.Join(dir, "safes"))
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func requireNoCandidates(t *testing.T, tmp string) {
	t.Helper()
	require.Empty(t, candidates(t, tmp))
}

// candidates returns the living candidates with that TMPDIR.
func candidates(t *testing.T, tmp string) []string {
	t.Helper()
	return inRole(t, candidateRole, tmp)
}

// inRole returns the living processes in a role with that TMPDIR.
func inRole(t *testing.T, role, tmp string) []string {
	t.Helper()
	found := []string{}
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		args, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if strings.Contains(string(args), role) && strings.Contains(string(environ), "TMPDIR="+tmp+"\x00") {
			found = append(found, entry.Name())
		}
	}
	return found
}
