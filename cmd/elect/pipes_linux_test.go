package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fill writes newlines until the pipe takes no more.
func fill(t *testing.T, fd int) {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.NoError(t, unix.SetNonblock(fd, true))
	for size := 4096; size > 0; { // a page at first: the last bytes fit no larger piece
		_, err := unix.Write(fd, bytes.Repeat([]byte{'\n'}, size))
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			size /= 2
		default:
			require.NoError(t, err)
		}
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
	require.NoError(t, err)
}

// freeze stops elect's guard and fills the pipe through which elect tells it what
// to do.
func freeze(t *testing.T, e *proc) (guard int) {
	t.Helper()
	guard = guardOf(t, e)
	require.NoError(t, syscall.Kill(guard, syscall.SIGSTOP))
	eventually(t, "the guard stands still", func() bool { return processState(guard) == "T" })
	fd, err := unix.Open(filepath.Join("/proc", strconv.Itoa(guard), "fd/3"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	fill(t, fd)
	require.NoError(t, unix.Close(fd))
	return guard
}

func TestRunPassesSIGTERMOnThroughAFrozenGuardAndAFullPipe(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(`trap 'exit 3' TERM; ` + heed)
	p.pid("child")
	freeze(t, e)
	e.send(t, syscall.SIGTERM)
	require.Equal(t, 3, e.status(t))
	_, held := p.record()
	require.False(t, held)
}

func TestRunKillsTheCommandOfAFrozenGuardWithAFullPipeInTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const ttl = 10 * time.Second
	e := p.run(`trap '' TERM; `+stay, "--ttl", ttl.String(), "--grace", "300ms", "--once")
	child := p.pid("child")
	guard := freeze(t, e)
	time.Sleep(ttl * 2 / 5) // elect has refreshed, and could not tell it
	p.remove()
	removed := time.Now()
	eventually(t, "the command is killed", func() bool { return !alive(child) })
	require.Less(t, time.Since(removed), ttl)
	require.Equal(t, 125, e.status(t))
	require.False(t, alive(guard))
}

func TestRunAfterASecondSIGTERMKillsTheCommandOfAFrozenGuard(t *testing.T) {
	t.Parallel()
	for grace := 300 * time.Millisecond; ; grace *= 2 { // as in the test without a frozen guard
		p := newPlace(t)
		e := p.run(`trap 'echo >"$1/told"' TERM; `+heed, "--grace", grace.String())
		child := p.pid("child")
		freeze(t, e)
		e.send(t, syscall.SIGTERM)
		p.note("told")
		freeze(t, e)
		e.send(t, syscall.SIGTERM)
		if e.killed(t, child, grace) {
			return
		}
	}
}

// runUnread starts elect run with a pipe as standard error that is full, or will
// be, and that nobody reads.
func (p *place) runUnread(script string, flags ...string) (e *proc, stderr *os.File) {
	p.t.Helper()
	fds := make([]int, 2)
	require.NoError(p.t, unix.Pipe2(fds, unix.O_CLOEXEC))
	reader, writer := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	p.t.Cleanup(func() { reader.Close(); writer.Close() })
	args := append([]string{"run", "--store", p.store}, flags...)
	cmd := exec.Command(elect, append(args, "job", "--", "sh", "-c", script, "sh", p.notes)...)
	cmd.Stderr = writer
	return startCommand(p.t, cmd), writer
}

func TestRunLeadsAndStopsWhileNobodyReadsStandardError(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	// The shell would wait for room for a message of its own.
	e, stderr := p.runUnread(`exec 2>/dev/null; trap 'exit 3' TERM; `+heed, "--ttl", "6s", "--grace", "300ms", "--log-level", "debug")
	first := p.pid("child")
	fill(t, int(stderr.Fd()))
	removed := time.Now()
	p.remove()
	eventually(t, "the command is stopped", func() bool { return !alive(first) })
	require.Less(t, time.Since(removed), 6*time.Second)
	p.pidAfter("child", first) // and it leads again
	e.send(t, syscall.SIGTERM)
	require.Equal(t, 3, e.status(t))
	_, held := p.record()
	require.False(t, held)
}

func TestRunGoesOnWhenTheReaderOfStandardErrorIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	fds := make([]int, 2)
	require.NoError(t, unix.Pipe2(fds, unix.O_CLOEXEC))
	writer := os.NewFile(uintptr(fds[1]), "writer")
	defer writer.Close()
	cmd := exec.Command(elect, "run", "--store", p.store, "--ttl", "6s", "--grace", "300ms", "job", "--", "sh", "-c", "exec 2>/dev/null; "+stay, "sh", p.notes)
	cmd.Stderr = writer
	e := startCommand(t, cmd)
	first := p.pid("child")
	require.NoError(t, unix.Close(fds[0]))
	p.remove()
	p.pidAfter("child", first)
	e.send(t, syscall.SIGTERM)
	require.Equal(t, 143, e.status(t))
}
