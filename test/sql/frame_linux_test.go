package sqlkv_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// A frame is how unshare(1) starts a process whose boot clock cannot be compared with
// ours.
type frame []string

// container has a boot id of its own, as systemd-nspawn and LXC give one to each.
func container(t *testing.T, id string) frame {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boot_id")
	require.NoError(t, os.WriteFile(file, []byte(id+"\n"), 0o600))
	return frame{"--map-root-user", "--mount", "sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, file}
}

func containerA(t *testing.T) frame {
	return container(t, "aaaaaaaa-0000-4000-8000-000000000000")
}

// shifted has a time namespace of its own, with a clock that is ahead.
func shifted(*testing.T) frame {
	return frame{"--map-root-user", "--time", "--fork", "--kill-child", "--boottime", "100000"}
}

// A process is this test binary at work in another frame.
type process struct {
	cmd   *exec.Cmd
	lines chan string
}

// play starts a role. A nil frame is ours.
func (p *place) play(t *testing.T, in frame, role string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	if in != nil {
		cmd = exec.Command("unshare", append(slices.Clip(in), self)...)
	}
	cmd.Env = append(os.Environ(), frameVariable+"="+role, sourceVariable+"="+p.source+"&_pragma=busy_timeout(5000)")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	proc := &process{cmd: cmd, lines: make(chan string, 100)}
	go proc.read(out)
	t.Cleanup(proc.kill)
	return proc
}

func (p *process) read(out io.Reader) {
	defer close(p.lines)
	for sc := bufio.NewScanner(out); sc.Scan(); {
		p.lines <- sc.Text()
	}
}

// kill ends the process, and waits for that.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have gone
	for range p.lines {
	}
	_ = p.cmd.Wait() // it was killed
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, sig))
}

// stop puts the process to sleep, though not within a write of its own, in which it would hold
// up all others: nobody else writes meanwhile.
func (p *process) stop(t *testing.T, in *place) {
	t.Helper()
	conn, err := in.hand.Conn(within(t, patience))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = conn.ExecContext(within(t, patience), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	p.signal(t, syscall.SIGSTOP)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	}, patience, time.Millisecond)
	_, err = conn.ExecContext(within(t, patience), "ROLLBACK")
	require.NoError(t, err)
}

// line returns the process's next line.
func (p *process) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(patience):
		require.FailNow(t, "the process said nothing")
		return ""
	}
}

// says returns what follows prefix in the process's next line.
func (p *process) says(t *testing.T, prefix string) string {
	t.Helper()
	line := p.line(t)
	rest, ok := strings.CutPrefix(line, prefix)
	require.True(t, ok, "the process said %q, not %q", line, prefix)
	return strings.TrimSpace(rest)
}

// silent requires that the process says nothing for so long.
func (p *process) silent(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case line := <-p.lines:
		require.FailNow(t, "the process is not silent", "it said %q", line)
	case <-time.After(d):
	}
}

// elected returns the token of the next line.
func (p *process) elected(t *testing.T) uint64 {
	t.Helper()
	token, err := strconv.ParseUint(p.says(t, "elected"), 10, 64)
	require.NoError(t, err)
	return token
}

// refreshed returns when the record with the token was last written. Its owner is
// stopped, or about to be.
func (p *place) refreshed(t *testing.T, token uint64) time.Time {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	var text string
	require.NoError(t, p.hand.QueryRowContext(within(t, patience), "SELECT updated FROM election WHERE token = ?", int64(token)).Scan(&text))
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", text)
	require.NoError(t, err)
	return at
}

// strangers are pairs of processes of one host that cannot compare their clocks.
func strangers(t *testing.T, test func(t *testing.T, p *place, one, other frame)) {
	t.Parallel()
	for name, pair := range map[string]func(*testing.T) (frame, frame){
		"host and container":            func(t *testing.T) (frame, frame) { return nil, containerA(t) },
		"container and host":            func(t *testing.T) (frame, frame) { return containerA(t), nil },
		"host and shifted clock":        func(t *testing.T) (frame, frame) { return nil, shifted(t) },
		"shifted clock and a container": func(t *testing.T) (frame, frame) { return shifted(t), containerA(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := pair(t)
			test(t, inSQLite(t), one, other)
		})
	}
}

// TestALeaderIsLeftAloneWhateverBootIDOthersSee is of one host: a boot id, or a time
// namespace, is no host's.
func TestALeaderIsLeftAloneWhateverBootIDOthersSee(t *testing.T) {
	strangers(t, func(t *testing.T, p *place, one, other frame) {
		leader := p.play(t, one, "hold")
		leader.elected(t)
		for range 3 {
			trial := p.play(t, other, "try")
			require.Contains(t, trial.says(t, "refused:"), kv.ErrHeld.Error())
			trial.kill()
		}
		waiting := p.play(t, other, "claim")
		waiting.silent(t, frameTTL+time.Second)
		leader.silent(t, time.Millisecond)
	})
}

// TestADeadLeaderOfAnotherClockIsFollowedAfterItsTTL has the leader killed, and
// stopped: nobody who sees another clock can tell these from each other.
func TestADeadLeaderOfAnotherClockIsFollowedAfterItsTTL(t *testing.T) {
	strangers(t, func(t *testing.T, p *place, one, other frame) {
		leader := p.play(t, one, "hold")
		token := leader.elected(t)
		waiting := p.play(t, other, "claim")
		waiting.silent(t, time.Second)
		leader.stop(t, p)
		refreshed := p.refreshed(t, token)
		require.Greater(t, waiting.elected(t), token)
		require.Greater(t, time.Since(refreshed), frameTTL*9/10, "wall clocks are set by little")
		leader.signal(t, syscall.SIGCONT)
		require.Contains(t, leader.says(t, "error:"), kv.ErrStale.Error())
		waiting.silent(t, frameTTL/2)
	})
}

// TestProgramsThatAskOnceGetInAfterAReboot is of cron: nobody watches the record of the
// boot before, and each program sees it for the first time.
func TestProgramsThatAskOnceGetInAfterAReboot(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	before := p.play(t, containerA(t), "hold")
	token := before.elected(t)
	before.kill()
	other := container(t, "bbbbbbbb-0000-4000-8000-000000000000")
	for _, in := range []frame{nil, other} { // each has a clock of its own
		trial := p.play(t, in, "try")
		require.Contains(t, trial.says(t, "refused:"), "another boot")
		trial.kill()
	}
	time.Sleep(frameTTL)
	require.Greater(t, p.play(t, nil, "try").elected(t), token)
	var rows int
	require.NoError(t, p.hand.QueryRowContext(within(t, patience), "SELECT count(*) FROM election").Scan(&rows))
	require.Equal(t, 1, rows, "what was written down is not needed any more")
}

// TestAnHeirWithAnotherClockKeepsWhatItWasGiven has the leader hand over a record whose
// expiry is on the leader's clock.
func TestAnHeirWithAnotherClockKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := sqlkv.New(p.open(t, ""), p.dialect, p.opts())
	heir := p.play(t, containerA(t), "heir")
	heir.elected(t)
	rec := mortal(frameTTL)
	rec, err := store.Create(within(t, patience), "n", rec)
	require.NoError(t, err)
	next, err := store.Get(within(t, patience), "heir")
	require.NoError(t, err)
	next.TTL = frameTTL
	given, err := store.Swap(within(t, patience), "n", rec, next)
	require.NoError(t, err)
	require.Equal(t, strconv.FormatUint(given.Token, 10), heir.says(t, "inherited"))
	heir.silent(t, frameTTL+time.Second)
	holds(t, store, "n", given)
}

// TestAGuardHoldsForTheOwnerAloneWhateverItsClock has a guard at work while another
// clock takes the safe over: it waits for the commit, and no later guard holds.
func TestAGuardHoldsForTheOwnerAloneWhateverItsClock(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	rec, err := store.Create(within(t, patience), "n", mortal(frameTTL))
	require.NoError(t, err)
	tx, err := p.hand.BeginTx(within(t, patience), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	require.NoError(t, store.Guard(within(t, patience), tx, "n", rec))
	waiting := p.play(t, containerA(t), "claim")
	waiting.silent(t, frameTTL+time.Second)
	require.NoError(t, tx.Commit())
	require.Greater(t, waiting.elected(t), rec.Token)

	tx, err = p.hand.BeginTx(within(t, patience), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	require.ErrorIs(t, store.Guard(within(t, patience), tx, "n", rec), kv.ErrStale)
	where, args := store.Condition("n", rec, 0)
	var n int
	require.NoError(t, tx.QueryRowContext(within(t, patience), "SELECT count(*) FROM election WHERE "+where, args...).Scan(&n))
	require.Zero(t, n)
}

// TestAForeignRowIsNotObserved has somebody's lock with an expiry by another clock: it
// has no TTL that could be waited for.
func TestAForeignRowIsNotObserved(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	name := named()
	p.do(t, "INSERT INTO election (name, value, expires, boot, timens) VALUES (?, X'61', 1, 'another boot', '')", name)
	for range 3 {
		_, err := store.Create(within(t, patience), name, signed("the next"))
		require.ErrorIs(t, err, kv.ErrHeld)
		time.Sleep(50 * time.Millisecond)
	}
	got, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.True(t, got.Foreign)
}
