//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// elect is the path of the command, which TestMain builds.
var elect string

func TestMain(m *testing.M) {
	testenv.Parallel(8)
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "elect-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		// A hangup that is ignored (nohup) would be ignored by every child as well.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		elect = filepath.Join(dir, "elect")
		if out, err := exec.Command("go", "build", "-o", elect, ".").CombinedOutput(); err != nil {
			panic(fmt.Sprintf("go build: %v\n%s", err, out))
		}
		return m.Run()
	}())
}

// A proc is a started process with its output.
type proc struct {
	*exec.Cmd
	out, err locked
	done     chan struct{}
}

// A locked buffer can be read while it is written.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start starts elect; it is killed when the test ends.
func start(t *testing.T, args ...string) *proc {
	t.Helper()
	return startCommand(t, exec.Command(elect, args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *proc {
	t.Helper()
	p := &proc{Cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.err
	}
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%q\nstdout:\n%s\nstderr:\n%s", cmd.Args[1:], &p.out, &p.err)
		}
	})
	return p
}

// status waits for the end and returns the exit status.
func (p *proc) status(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		require.FailNow(t, "elect does not end", "%q\nstderr:\n%s", p.Args[1:], &p.err)
	}
	return p.ProcessState.ExitCode()
}

func (p *proc) send(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(sig))
}

// finish runs elect to its end.
func finish(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	status = p.status(t)
	return status, p.out.String(), p.err.String()
}

// A place is a file store and a directory for notes of the commands that run.
type place struct {
	t     *testing.T
	store string
	name  string // of the election
	kv    kv.Store
	notes string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := filepath.Join(memoryDir(t), "store")
	store, err := filekv.New(dir, nil)
	require.NoError(t, err)
	return &place{t: t, store: "file://" + dir, name: "job", kv: store, notes: t.TempDir()}
}

// memoryDir makes a directory in memory, if the system has a place for that. On a disk to which
// test programs are being written, a sync can take longer than a short TTL.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "elect-test-") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// run starts elect run for the place's election, with a shell script as COMMAND.
// The script finds the directory for notes in $1.
func (p *place) run(script string, flags ...string) *proc {
	p.t.Helper()
	args := append([]string{"run", "--store", p.store}, flags...)
	return start(p.t, append(args, p.name, "--", "sh", "-c", script, "sh", p.notes)...)
}

// note waits until a script has written a note, and returns it.
func (p *place) note(name string) string {
	p.t.Helper()
	var text []byte
	eventually(p.t, "the note "+name, func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(p.notes, name))
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	})
	return strings.TrimSpace(string(text))
}

// pid waits for a note that is a process id.
func (p *place) pid(name string) int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.note(name))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// has reports whether a note was written.
func (p *place) has(name string) bool {
	_, err := os.Stat(filepath.Join(p.notes, name))
	return err == nil
}

// record returns what the safe of the election holds, false if it is vacant.
func (p *place) record() (kv.Record, bool) {
	p.t.Helper()
	rec, err := p.kv.Get(context.Background(), p.name)
	if errors.Is(err, kv.ErrVacant) {
		return kv.Record{}, false
	}
	require.NoError(p.t, err)
	return rec, true
}

// remove deletes the record of the election, as an operator would.
func (p *place) remove() {
	p.t.Helper()
	rec, held := p.record()
	require.True(p.t, held, "nobody leads")
	require.NoError(p.t, p.kv.Delete(context.Background(), p.name, rec))
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 20*time.Millisecond, what)
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if !hasProc() {
		return syscall.Kill(pid, 0) == nil
	}
	s := processState(pid)
	return s != "" && s != "Z"
}

// processState returns the letter of a process's state in proc_pid_stat(5), or nothing if
// there is no such process.
func processState(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
