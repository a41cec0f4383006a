package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what is written to master is typed.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// runAtTerminal starts elect run as the foreground process of a terminal.
func (p *place) runAtTerminal(script string) (*proc, *os.File) {
	p.t.Helper()
	master, slave := terminal(p.t)
	cmd := exec.Command(elect, "run", "--store", p.store, "job", "--", "sh", "-c", script, "sh", p.notes)
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return startCommand(p.t, cmd), master
}

func TestRunAtATerminalLetsTheCommandRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e, keys := p.runAtTerminal(`read line; echo "got $line"; exit 4`)
	_, err := keys.WriteString("hello\n")
	require.NoError(t, err)
	require.Equal(t, 4, e.status(t))
	require.Equal(t, "got hello\n", e.out.String())
}

func TestRunAtATerminalCannotBeSuspendedAndCtrlCEndsTheCommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	// It starts nothing when keys are typed: a child that is stopped between vfork and
	// exec would hold up the shell, of which nobody is told then.
	e, keys := p.runAtTerminal(`trap 'echo yes >"$1/continued"' CONT; sleep 60 & echo $$ >"$1/child"; wait; wait`)
	child := p.pid("child")
	_, err := keys.WriteString("\x1a") // Ctrl-Z
	require.NoError(t, err)
	require.Equal(t, "yes", p.note("continued"))
	_, err = keys.WriteString("\x03") // Ctrl-C
	require.NoError(t, err)
	require.Equal(t, 130, e.status(t))
	require.False(t, alive(child))
	_, held := p.record()
	require.False(t, held)
}
