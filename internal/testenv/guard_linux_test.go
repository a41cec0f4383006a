package testenv

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A machinery is what else than servers a test process had.
type machinery struct {
	Dir, Link, Disk string
	Pids            []int
}

func (m machinery) requireGone(t *testing.T) {
	t.Helper()
	for _, pid := range m.Pids {
		require.Eventually(t, func() bool { return !lives(pid) }, 20*time.Second, 10*time.Millisecond, "process %d lives on", pid)
	}
	require.Eventually(t, func() bool {
		_, err := net.InterfaceByName(m.Link)
		return err != nil
	}, 20*time.Second, 10*time.Millisecond, "an interface remains")
	require.Eventually(t, func() bool {
		mounts, err := os.ReadFile("/proc/mounts")
		return err == nil && !strings.Contains(string(mounts), m.Disk)
	}, 20*time.Second, 10*time.Millisecond, "a disk remains")
	require.Eventually(t, func() bool {
		_, err := os.Stat(m.Dir)
		return errors.Is(err, fs.ErrNotExist)
	}, 20*time.Second, 10*time.Millisecond, "files remain")
}

// assemble makes a network, a host, a command on it, and a disk.
func assemble(t *testing.T) machinery {
	n := NewNetwork(t)
	h := n.Host()
	h.Cut()
	cmd := exec.Command("sleep", "600")
	h.Command(cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	d := SmallDisk(t, 1<<20)
	require.NoError(t, os.WriteFile(d.Path()+"/file", []byte("kept"), 0o600))
	return machinery{Dir: d.Path(), Link: n.link, Disk: d.Path(), Pids: []int{n.router.pid(), h.place.pid(), cmd.Process.Pid}}
}

func requireRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("there are neither networks nor disks but for root")
	}
}

func TestNetworksAndDisksEndWithTheirTest(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	require.NoError(t, CanNetwork())
	require.NoError(t, CanMount())
	var m machinery
	t.Run("its test", func(t *testing.T) { m = assemble(t) })
	m.requireGone(t)
}

func TestNetworksAndDisksEndWithAKilledTestProcess(t *testing.T) {
	if os.Getenv(endVariable) != "" {
		m := assemble(t)
		g, err := theGuard()
		require.NoError(t, err)
		m.Dir = g.dir
		require.NoError(t, json.NewEncoder(os.Stdout).Encode(m))
		time.Sleep(time.Minute)
		return
	}
	requireRoot(t)
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), endVariable+"=kill")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var m machinery
	err = json.NewDecoder(out).Decode(&m)
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	m.requireGone(t)
}
