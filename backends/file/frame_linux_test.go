package filekv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/kv"
)

// frameTTL is long enough that a busy machine does not keep a holder from a refresh.
const frameTTL = 10 * time.Second

// silent requires that for a while none of the processes says anything.
func silent(t *testing.T, d time.Duration, why string, processes ...*process) {
	t.Helper()
	time.Sleep(d)
	for _, p := range processes {
		select {
		case line := <-p.lines:
			require.FailNow(t, why, "%s", line)
		default:
		}
	}
}

// inContainer has a command run with a boot id of its own, as systemd-nspawn and LXC
// give one to each container.
func inContainer(t testing.TB, id string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boot_id")
	require.NoError(t, os.WriteFile(file, []byte(id+"\n"), 0o600))
	return unshared(cmd, "--mount", "sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, file)
}

// withClock has a command run in a time namespace of its own.
func withClock(cmd *exec.Cmd) *exec.Cmd {
	return unshared(cmd, "--time", "--fork", "--kill-child", "--boottime", "100000")
}

// withoutLocks has a command run that sees nobody's locks, as another kernel would.
func withoutLocks(t testing.TB, dir string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	lives, copies := filepath.Join(dir, "lives"), t.TempDir()
	for _, name := range files(t, lives) {
		require.NoError(t, os.WriteFile(filepath.Join(copies, name), nil, 0o600))
	}
	return unshared(cmd, "--mount", "sh", "-c", `mount --bind "$0" "$1" && shift && exec "$@"`, copies, lives)
}

func unshared(cmd *exec.Cmd, args ...string) *exec.Cmd {
	args = append([]string{"--map-root-user"}, args...)
	other := exec.Command("unshare", append(args, cmd.Args...)...)
	other.Env, other.Stderr = cmd.Env, cmd.Stderr
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	return other
}

// strangers run a test for a holder that has another clock than the other process.
func strangers(t *testing.T, test func(t *testing.T, holder func(*exec.Cmd) *exec.Cmd)) {
	t.Parallel()
	t.Run("container", func(t *testing.T) {
		t.Parallel()
		test(t, func(cmd *exec.Cmd) *exec.Cmd { return inContainer(t, otherBoot, cmd) })
	})
	t.Run("shifted clock", func(t *testing.T) {
		t.Parallel()
		test(t, withClock)
	})
}

func TestAHolderIsLeftAloneWhateverBootIDOthersSee(t *testing.T) {
	strangers(t, func(t *testing.T, elsewhere func(*exec.Cmd) *exec.Cmd) {
		dir := t.TempDir()
		holder := start(t, elsewhere(command(t, "hold", dir, "n", frameTTL)))
		holder.says("holding")
		trial := withoutLocks(t, dir, command(t, "try", dir, "n", frameTTL))
		require.Contains(t, start(t, trial).says("refused:"), kv.ErrHeld.Error())
		waiting := start(t, command(t, "claim", dir, "n", frameTTL))
		blind := start(t, withoutLocks(t, dir, command(t, "claim", dir, "n", frameTTL)))
		silent(t, frameTTL+time.Second, "somebody takes it for dead", waiting, blind, holder)
	})
}

func TestADeadHolderOfAnotherClockIsFollowedAfterItsTTL(t *testing.T) {
	strangers(t, func(t *testing.T, elsewhere func(*exec.Cmd) *exec.Cmd) {
		s := open(t, t.TempDir())
		dir := filepath.Dir(s.Lives())
		holder := start(t, elsewhere(command(t, "hold", dir, "n", frameTTL)))
		token, err := strconv.ParseUint(holder.says("holding"), 10, 64)
		require.NoError(t, err)
		waiting := start(t, command(t, "claim", dir, "n", frameTTL))
		silent(t, time.Second, "it does not wait", waiting)
		require.NoError(t, unix.Kill(-holder.cmd.Process.Pid, unix.SIGSTOP))
		time.Sleep(50 * time.Millisecond)
		page, err := os.Stat(lastPage(t, s, "n"))
		require.NoError(t, err)
		next, err := strconv.ParseUint(waiting.says("holding"), 10, 64)
		require.NoError(t, err)
		require.Greater(t, next, token)
		require.Greater(t, time.Since(page.ModTime()), frameTTL*9/10, "wall clocks are set by little")
		require.NoError(t, unix.Kill(-holder.cmd.Process.Pid, unix.SIGCONT))
		require.Contains(t, holder.says("error:"), kv.ErrStale.Error())
	})
}

// As cron starts them: each sees the record of the boot before for the first time.
func TestProgramsThatAskOnceGetInAfterAReboot(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	s := open(t, t.TempDir())
	dir := filepath.Dir(s.Lives())
	before := start(t, inContainer(t, otherBoot, command(t, "hold", dir, "n", ttl)))
	token, err := strconv.ParseUint(before.says("holding"), 10, 64)
	require.NoError(t, err)
	require.NoError(t, unix.Kill(-before.cmd.Process.Pid, unix.SIGKILL))
	<-before.lines // closed
	require.Contains(t, start(t, command(t, "try", dir, "n", ttl)).says("refused:"), "another boot")
	third := inContainer(t, "11111111-0000-4000-8000-000000000000", command(t, "try", dir, "n", ttl))
	require.Contains(t, start(t, third).says("refused:"), "another boot")
	time.Sleep(ttl)
	next, err := strconv.ParseUint(start(t, command(t, "try", dir, "n", ttl)).says("holding"), 10, 64)
	require.NoError(t, err)
	require.Greater(t, next, token)
	require.Len(t, files(t, s.Folder("n")), 2, "a head and a page: sightings are swept away")
}
