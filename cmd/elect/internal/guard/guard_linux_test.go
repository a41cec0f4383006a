package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/boottime"
)

// deafness, with a file that tells when the command runs, makes a guard one that hears nothing.
const deafness = "GUARD_TEST_DEAF="

// TestMain makes this program a guard, as elect is one.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != Role {
		os.Exit(m.Run())
	}
	play := Main
	if os.Getenv("GUARD_TEST_DEAF") != "" {
		play = hearNothing
	}
	if err := play(os.Args[2:], func(json.RawMessage) {}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hearNothing is what a guard does that starts the command and is frozen for good,
// as by a debugger or a disk: SIGCONT does not help.
func hearNothing(args []string, _ func(json.RawMessage)) error {
	runtime.LockOSThread()
	outlive()
	w := &warden{path: args[1], args: args[2:]}
	pid, err := w.start()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.NewFile(reportsFD, "reports")).Encode(report{Started: pid}); err != nil {
		return err
	}
	if err := os.WriteFile(os.Getenv("GUARD_TEST_DEAF"), nil, 0o600); err != nil {
		return err
	}
	select {}
}

func adopted(t *testing.T) *Parent {
	t.Helper()
	p, err := Adopt()
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// in is a boottime reading in the future, or the past.
func in(d time.Duration) time.Duration { return boottime.Now() + d }

func sleepFor(t *testing.T, p *Parent, until, grace, patience time.Duration, env ...string) *Guard {
	t.Helper()
	g, err := p.Start(Spec{
		Path: "/bin/sleep", Args: []string{"sleep", "600"}, Env: append(os.Environ(), env...),
		Grace: grace, Until: until, Patience: patience,
	})
	require.NoError(t, err)
	t.Cleanup(func() { g.kill(); <-g.Done() })
	return g
}

// ended waits for the end of all that was guarded.
func ended(t *testing.T, g *Guard) End {
	t.Helper()
	select {
	case <-g.Done():
	case <-time.After(30 * time.Second):
		require.FailNow(t, "somebody is left")
	}
	return g.End()
}

func TestNothingThatIsToldADeafGuardWaits(t *testing.T) {
	g := sleepFor(t, adopted(t), in(time.Hour), 100*time.Millisecond, 100*time.Millisecond, deafness+os.DevNull)
	orders, err := g.orders.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, orders.Control(func(fd uintptr) {
		_, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 4096)
	}))
	require.NoError(t, err)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 20_000 {
			g.Extend(in(time.Hour))
			g.Signal(syscall.SIGUSR1)
			if i%100 == 0 {
				runtime.Gosched() // the pipe fills
			}
		}
		g.Stop()
	}()
	select {
	case <-told:
	case <-time.After(30 * time.Second):
		require.FailNow(t, "a guard that does not read holds up who tells it")
	}
	end := ended(t, g)
	require.ErrorContains(t, end.Err, "the process that guards the command died: killed")
}

func TestADeafGuardIsKilledAGraceAndSomePatienceAfterTheEndOfTrust(t *testing.T) {
	const grace, patience = 200 * time.Millisecond, 100 * time.Millisecond
	running := filepath.Join(t.TempDir(), "running")
	g := sleepFor(t, adopted(t), in(time.Hour), grace, patience, deafness+running)
	require.Eventually(t, func() bool { _, err := os.Stat(running); return err == nil }, 30*time.Second, time.Millisecond)
	until := in(time.Second)
	g.Extend(until)
	end := ended(t, g)
	require.GreaterOrEqual(t, boottime.Now(), until+grace+patience)
	require.True(t, end.Started)
	require.ErrorContains(t, end.Err, "the process that guards the command died: killed")
}

func TestStopCountsOnceAndNoExtensionPutsItOff(t *testing.T) {
	g := sleepFor(t, adopted(t), in(time.Hour), 100*time.Millisecond, 100*time.Millisecond, deafness+os.DevNull)
	g.Stop()
	for range 100 {
		g.Stop()
		g.Extend(in(time.Hour))
	}
	ended(t, g)
}

func TestACommandIsNotStartedWhenTrustIsOver(t *testing.T) {
	file := t.TempDir() + "/ran"
	g, err := adopted(t).Start(Spec{
		Path: "/bin/touch", Args: []string{"touch", file}, Env: os.Environ(),
		Grace: time.Second, Until: in(-time.Millisecond), Patience: time.Minute,
	})
	require.NoError(t, err)
	require.Equal(t, End{Expired: true}, ended(t, g))
	require.NoFileExists(t, file)
}

func TestAGuardThatWasFrozenObeysItsOrdersBeforeItJudges(t *testing.T) {
	p := adopted(t)
	g, until := freeze(t, p, time.Second)
	for trust := 2 * time.Second; boottime.Now() >= until; trust *= 2 {
		require.Less(t, trust, time.Minute, "this machine is too busy to stop a guard in time")
		g.kill()
		<-g.Done()
		g, until = freeze(t, p, trust)
	}
	g.Extend(in(time.Hour))
	time.Sleep(until - boottime.Now() + look) // the end of trust that it knows is past
	require.NoError(t, syscall.Kill(g.pid, syscall.SIGCONT))
	time.Sleep(2 * look)
	select {
	case <-g.Done():
		require.Fail(t, "it has stopped the command, though trust goes on")
	default:
	}
	g.Signal(syscall.SIGINT)
	end := ended(t, g)
	require.NoError(t, end.Err)
	require.False(t, end.Expired)
	require.Equal(t, syscall.SIGINT, end.Status.Signal())
}

// freeze stops a guard that has started its command. It may be too late: until is when trust ends.
func freeze(t *testing.T, p *Parent, trust time.Duration) (g *Guard, until time.Duration) {
	t.Helper()
	until = in(trust)
	g = sleepFor(t, p, until, 100*time.Millisecond, time.Minute)
	require.Eventually(t, func() bool {
		return boottime.Now() >= until || len(below(g.pid, childrenOfAll())) > 0
	}, time.Minute, time.Millisecond)
	p.signal(g.pid, syscall.SIGSTOP)
	return g, until
}

func TestAWardenLooksForANewerOrderBeforeItJudges(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	orders, err := newInbox(int(r.Fd()))
	require.NoError(t, err)
	late := &warden{orders: orders, until: in(-time.Minute)}
	require.NoError(t, json.NewEncoder(w).Encode(order{Until: in(time.Hour)}))
	late.act()
	require.Zero(t, late.termed)
	require.False(t, late.expired)
}

func TestProcIsOwnIfItShowsOneIDAndThatIsOurs(t *testing.T) {
	pid := os.Getpid()
	for status, want := range map[string]bool{
		fmt.Sprintf("Name:\tx\nPid:\t%d\nNSpid:\t%d\n", pid, pid):          true,
		fmt.Sprintf("Name:\tx\nPid:\t%d\n", pid):                           true,
		fmt.Sprintf("Name:\tx\nPid:\t%d\nNSpid:\t%d\n", pid+1, pid+1):      false,
		fmt.Sprintf("Name:\tx\nPid:\t%d\nNSpid:\t%d\t%d\n", pid, pid, pid): false,
	} {
		require.Equal(t, want, isOwn([]byte(status)), "%q", status)
	}
}

// A kernel need not tell the children of a thread; then all processes are asked for their parents.
func TestDescendantsAreFoundInEitherWay(t *testing.T) {
	_, err := os.Stat("/proc/thread-self/children")
	require.NoError(t, err, "this kernel does not tell")
	dir := t.TempDir()
	const tree = `echo $$ >"$1/child"
setsid sh -c 'echo $$ >"$1/session"; sleep 60 & wait' sh "$1" &
sh -c '(sh -c "echo \$\$ >\"$1/orphan\"; exec sleep 60" sh "$1" &)' sh "$1"
wait`
	adopted(t) // for the orphan
	cmd := exec.Command("sh", "-c", tree, "sh", dir)
	require.NoError(t, cmd.Start())
	defer killAll(0)
	var known []int
	for _, name := range []string{"child", "session", "orphan"} {
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(filepath.Join(dir, name))
			pid, bad := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil || bad != nil {
				return false
			}
			known = append(known, pid)
			return true
		}, 20*time.Second, time.Millisecond, name)
	}
	require.Eventually(t, func() bool {
		threads, all := below(os.Getpid(), childrenOfThreads), below(os.Getpid(), childrenOfAll())
		slices.Sort(threads)
		slices.Sort(all)
		return len(all) == 4 && slices.Equal(threads, all)
	}, 20*time.Second, time.Millisecond)
	require.Subset(t, descendants(os.Getpid()), known)
}

// A process that ends hides its children for a moment. The command ends as soon as it is asked to;
// what has left its process group is to be asked as well.
func TestWhatHasLeftTheProcessGroupIsAskedToEndThoughTheCommandEndsFirst(t *testing.T) {
	adopted(t)
	const tree = `for i in 1 2 3 4 5 6 7 8; do
	setsid sh -c 'trap "exit" TERM; echo >>"$1/ready"; while :; do sleep 0.01; done' sh "$1" &
done; wait`
	for range 20 {
		dir := t.TempDir()
		cmd := exec.Command("sh", "-c", tree, "sh", dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, "ready"))
			return len(text) == 8
		}, 20*time.Second, time.Millisecond)
		askAll(cmd.Process.Pid)
		left := true
		for end := time.Now().Add(20 * time.Second); left && time.Now().Before(end); time.Sleep(time.Millisecond) {
			left = collect(func(int, syscall.WaitStatus) {})
		}
		if left {
			killAll(cmd.Process.Pid)
			t.Fatal("somebody was not asked")
		}
	}
}

// On a machine with many processes, more of which are ready to run than it has processors for.
func BenchmarkDescendants(b *testing.B) {
	crowd := func(n int, script string) {
		for range n {
			cmd := exec.Command("sh", "-c", script)
			require.NoError(b, cmd.Start())
			b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		}
	}
	crowd(1, "exec sleep 600")
	root := below(os.Getpid(), childrenOfThreads)[0]
	crowd(400, "exec sleep 600")
	crowd(40, "while :; do :; done")
	b.Run("of threads", func(b *testing.B) {
		for b.Loop() {
			below(root, childrenOfThreads)
		}
	})
	b.Run("of all", func(b *testing.B) {
		for b.Loop() {
			below(root, childrenOfAll())
		}
	})
}
