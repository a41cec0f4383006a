package fence_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/fence"
)

// Another process opens the fence and admits 5 and 6; each of its steps is
// watched. What is said to be admitted has been synced, renamed and synced.
func TestATokenIsOnDiskBeforeItIsAdmitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	steps, said := traced(t, path, -1)
	turn := []string{"write fence.new", "sync fence.new", "rename", "sync folder"}
	var want []string
	for range 3 { // as it opens, and for each token
		want = append(append(want, turn...), "say")
	}
	require.Equal(t, want, steps)
	require.Equal(t, []string{"open", "admitted 5", "admitted 6"}, said)
	require.EqualValues(t, 6, kept(t, path))
}

func TestAProcessKilledAtAnyStepForgetsNothingThatItAdmitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	all, _ := traced(t, path, -1)
	for n := range all {
		path := filepath.Join(t.TempDir(), "fence")
		steps, said := traced(t, path, n)
		require.Equal(t, all[:n+1], steps)
		f, err := fence.Open(path)
		require.NoError(t, err, "killed at step %d, %q", n, steps[n])
		admitted := uint64(0)
		if last := len(said) - 1; last > 0 {
			_, err := fmt.Sscanf(said[last], "admitted %d", &admitted)
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, f.Largest(), admitted, "killed at step %d, %q", n, steps[n])
		require.Contains(t, []uint64{0, 5, 6}, f.Largest())
		require.NoError(t, f.Admit(7))
		require.NoError(t, f.Close())
		require.Equal(t, "fence fence.lock", list(t, filepath.Dir(path)))
	}
}

// traced runs the process and returns the steps that it took, and what it said.
// It is killed when it is about to take step number kill, if it comes to that.
func traced(t *testing.T, path string, kill int) (steps, said []string) {
	t.Helper()
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(in, []byte("5\n6\n"), 0o600))
	stdin, err := os.Open(in)
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := os.Create(out)
	require.NoError(t, err)
	defer stdout.Close()
	p, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{
		Env:   append(os.Environ(), "FENCE_TEST_PATH="+path),
		Files: []*os.File{stdin, stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Ptrace: true},
	})
	require.NoError(t, err)
	var status syscall.WaitStatus
	_, err = syscall.Wait4(p.Pid, &status, 0, nil)
	require.NoError(t, err)
	const exitKill, sysGood = 0x100000, 1
	require.NoError(t, syscall.PtraceSetOptions(p.Pid, exitKill|sysGood|syscall.PTRACE_O_TRACECLONE))
	for tid := p.Pid; ; {
		signal := 0
		if status.Stopped() && status.StopSignal() == syscall.SIGTRAP|0x80 {
			if step := stepOf(tid, path, out); step != "" {
				steps = append(steps, step)
				if len(steps) == kill+1 {
					require.NoError(t, syscall.Kill(p.Pid, syscall.SIGKILL))
				}
			}
		} else if status.Stopped() && status.StopSignal() != syscall.SIGTRAP && status.StopSignal() != syscall.SIGSTOP {
			signal = int(status.StopSignal())
		}
		if err := syscall.PtraceSyscall(tid, signal); !errors.Is(err, syscall.ESRCH) {
			require.NoError(t, err)
		}
		tid, err = syscall.Wait4(-1, &status, syscall.WALL|syscall.WNOTHREAD, nil)
		require.NoError(t, err)
		if tid == p.Pid && (status.Exited() || status.Signaled()) {
			break
		}
	}
	require.NoError(t, p.Release())
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	return steps, strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// stepOf names the system call that a thread is about to make, if it matters.
func stepOf(tid int, path, out string) string {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(tid, &regs) != nil || int64(regs.Rax) != -int64(syscall.ENOSYS) {
		return "" // it has made it
	}
	file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, regs.Rdi))
	switch regs.Orig_rax {
	case syscall.SYS_RENAME, syscall.SYS_RENAMEAT, 316: // renameat2
		return "rename"
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		switch file {
		case out:
			return "say"
		case path, path + ".new":
			return "write " + filepath.Base(file)
		}
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		if file == filepath.Dir(path) {
			return "sync folder"
		}
		return "sync " + filepath.Base(file)
	}
	return ""
}
