package main

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// runIn starts elect run, for the election "job" and with a shell script as
// COMMAND, in namespaces of its own.
func (p *place) runIn(namespaces []string, script string, flags ...string) *proc {
	p.t.Helper()
	if os.Geteuid() != 0 {
		p.t.Skip("namespaces take root")
	}
	args := append(namespaces, elect, "run", "--store", p.store)
	args = append(append(args, flags...), "job", "--", "sh", "-c", script, "sh", p.notes)
	return startCommand(p.t, exec.Command("unshare", args...))
}

// childOf returns a process's only child.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	children := childrenOf(t, pid)
	require.Len(t, children, 1)
	return children[0]
}

func TestRunRefusesToStartWhereProcIsOfAnotherPIDNamespace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespaces []string
		why        string
	}{
		"the parent's": {[]string{"--pid", "--fork"}, "/proc shows the processes of another PID namespace"},
		"none": {
			[]string{"--mount", "sh", "-c", `mount -t tmpfs none /proc && exec "$@"`, "sh"},
			"/proc is not mounted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			e := p.runIn(c.namespaces, `echo >"$1/ran"`)
			require.Equal(t, 125, e.status(t))
			require.Contains(t, e.err.String(), c.why)
			require.Contains(t, e.err.String(), "mount -t proc proc /proc")
			require.False(t, p.has("ran"))
			_, held := p.record()
			require.False(t, held)
		})
	}
}

func TestRunAsksTheCommandsGroupToEndAlsoWhereProcHasVanished(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.runIn([]string{"--mount"}, `trap 'echo >"$1/told"; exit 0' TERM; `+heed, "--ttl", "5m", "--grace", "1m", "--once")
	child := p.pid("child")
	enter := exec.Command("nsenter", "--mount", "--target", strconv.Itoa(e.Process.Pid), "mount", "-t", "tmpfs", "none", "/proc")
	out, err := enter.CombinedOutput()
	require.NoError(t, err, "%s", out)
	p.remove()
	require.Equal(t, 125, e.status(t))
	require.False(t, alive(child))
	require.True(t, p.has("told"))
	require.Contains(t, e.err.String(), "leadership lost: the record is gone or somebody else's; COMMAND was stopped")
}

// As the first process of a container elect is the parent of whatever is orphaned
// there, also of what does not come of COMMAND.
func TestRunAsTheFirstProcessOfAContainerReapsOrphans(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{true, false} {
		t.Run("leads "+strconv.FormatBool(leads), func(t *testing.T) {
			p := newPlace(t)
			if !leads {
				other := p.run(stay, "--id", "other")
				p.pid("child")
				defer other.send(t, syscall.SIGTERM)
			}
			e := p.runIn([]string{"--pid", "--fork", "--mount-proc"}, `trap 'exit 3' TERM; echo >"$1/runs"; while :; do sleep 0.05; done`)
			if leads {
				p.note("runs")
			}
			eventually(t, "elect has started", func() bool { return len(childrenOf(t, e.Process.Pid)) == 1 })
			first := childOf(t, e.Process.Pid)
			own := 0
			if leads {
				own = 1
			}
			eventually(t, "elect has its guard", func() bool { return len(childrenOf(t, first)) == own })

			stranger := exec.Command("nsenter", "--pid", "--mount", "--target", strconv.Itoa(first), "sh", "-c", "sleep 1000 >/dev/null 2>&1 & exit 0")
			before := childrenOf(t, first)
			out, err := stranger.CombinedOutput()
			require.NoError(t, err, "%s", out)
			orphans := slices.DeleteFunc(childrenOf(t, first), func(pid int) bool { return slices.Contains(before, pid) })
			require.Len(t, orphans, 1, "the orphan is not elect's")
			require.NoError(t, syscall.Kill(orphans[0], syscall.SIGKILL))
			eventually(t, "the orphan is reaped", func() bool { return len(childrenOf(t, first)) == own })

			require.NoError(t, syscall.Kill(first, syscall.SIGTERM))
			if leads {
				require.Equal(t, 3, e.status(t))
			} else {
				require.Equal(t, 143, e.status(t))
			}
		})
	}
}
