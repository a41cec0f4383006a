//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// burn keeps all processors busy, until stop is called or the test ends.
func burn(t testing.TB) (stop func()) {
	burners := []*exec.Cmd{}
	for range 4 * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, cmd.Start())
		burners = append(burners, cmd)
	}
	stop = func() {
		for _, cmd := range burners {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
		burners = nil
	}
	t.Cleanup(stop)
	return stop
}

// renice lets all threads of a process come after others.
func renice(t testing.TB, pid, nice int) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		require.NoError(t, err)
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, id, nice); err != nil {
			require.ErrorIs(t, err, syscall.ESRCH, os.Getpid())
		}
	}
}
