//go:build unix

package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endVariable tells a copy of this test binary how to end.
const endVariable = "TESTENV_TEST_END"

// signals are the ends that come from outside. The go command sends SIGQUIT to a
// test that takes too long.
var signals = map[string]os.Signal{
	"interrupt": syscall.SIGINT,
	"quit":      syscall.SIGQUIT,
	"kill":      syscall.SIGKILL,
}

// A holding is what a test process had when it was about to end.
type holding struct {
	Dir   string
	Pids  []int
	Addrs []string
}

func TestServersEndWithTheTestProcessHoweverItEnds(t *testing.T) {
	if end := os.Getenv(endVariable); end != "" {
		holdServersAndEnd(t, end)
		return
	}
	for _, end := range []string{"return", "exit", "panic", "interrupt", "quit", "kill"} {
		t.Run(end, func(t *testing.T) {
			held := runHolder(t, end)
			require.Greater(t, len(held.Pids), 5, "the group, four servers, and what belongs to PostgreSQL")
			for _, pid := range held.Pids {
				require.Eventually(t, func() bool { return !lives(pid) }, 20*time.Second, 10*time.Millisecond,
					"process %d lives on", pid)
			}
			for _, addr := range held.Addrs {
				require.Eventually(t, func() bool { return accepts(t.Context(), addr) != nil },
					20*time.Second, 10*time.Millisecond, "something serves on at %s", addr)
			}
			require.Eventually(t, func() bool {
				_, err := os.Stat(held.Dir)
				return errors.Is(err, fs.ErrNotExist)
			}, 20*time.Second, 10*time.Millisecond, "data of ended servers remains")
		})
	}
}

// runHolder runs this test binary again as a process that holds servers and
// ends, and returns what it held.
func runHolder(t *testing.T, end string) holding {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestServersEndWithTheTestProcessHoweverItEnds$")
	cmd.Env = append(os.Environ(), endVariable+"="+end)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	var held holding
	err = json.NewDecoder(out).Decode(&held)
	if sig, ok := signals[end]; ok {
		require.NoError(t, cmd.Process.Signal(sig))
	}
	require.NoError(t, err)
	if err := cmd.Wait(); end != "return" {
		require.Error(t, err)
	}
	return held
}

// holdServersAndEnd is what the copy does: it tells what it holds and ends.
func holdServersAndEnd(t *testing.T, end string) {
	etcd, redis, postgres := StartEtcd(t), StartRedis(t), StartPostgres(t)
	shared, err := newRedis()
	require.NoError(t, err)
	require.NoError(t, shared.start())
	g, err := theGuard()
	require.NoError(t, err)
	etcd.Pause()
	postgres.Pause()
	tell(t, g, etcd, redis, postgres, shared)

	switch end {
	case "return":
		return
	case "exit":
		os.Exit(3)
	case "panic":
		go panic("on purpose")
	}
	time.Sleep(time.Minute)
}

func tell(t *testing.T, g *guard, servers ...*Server) {
	held := holding{Dir: g.dir, Pids: []int{g.group}}
	for _, s := range servers {
		held.Pids = append(held.Pids, s.cmd.Process.Pid)
		family, err := children(s.cmd.Process.Pid)
		require.NoError(t, err)
		held.Pids = append(held.Pids, family...)
		held.Addrs = append(held.Addrs, s.Addr())
	}
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(held))
}

// lives reports whether the process exists and has not ended, reaped or not.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
