package main

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A step is one of the work of a program that asks whether its elect leads.
type step struct {
	at    time.Time
	token uint64
}

// A poller is such a program, of examples/poll, with its elect.
type poller struct {
	*proc
	mu    sync.Mutex
	steps []step
}

// newPoller starts one. Its elect keeps the next leader waiting for as long as it may need.
func newPoller(t *testing.T, p *place, program []string, ttl time.Duration, id string) *poller {
	t.Helper()
	w := &poller{proc: start(t, "run", "--store", p.store, local, "--id", id, "--ttl", ttl.String(), "--grace", "4s", "job")}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Env = append(os.Environ(), "LEADER_URL=http://"+w.answering(t)+"/leader")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			_, token, _ := strings.Cut(lines.Text(), "working token=")
			n, err := strconv.ParseUint(token, 10, 64)
			if err != nil {
				panic("what is " + lines.Text())
			}
			w.mu.Lock()
			w.steps = append(w.steps, step{time.Now(), n})
			w.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait()
	})
	return w
}

func (w *poller) soFar() []step {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]step{}, w.steps...)
}

// awaitWork waits until it works, after a moment.
func (w *poller) awaitWork(t *testing.T, since time.Time) {
	t.Helper()
	eventually(t, "it works", func() bool {
		steps := w.soFar()
		return len(steps) > 0 && steps[len(steps)-1].at.After(since)
	})
}

func TestTheProgramsThatAskStopBeforeTheNextOneWorks(t *testing.T) {
	for _, program := range [][]string{{"python3", "../../examples/poll/leader.py"}, {"sh", "../../examples/poll/leader.sh"}} {
		t.Run(program[0], func(t *testing.T) {
			t.Parallel() // mostly it waits
			for _, tool := range []string{program[0], "curl"} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skip("install ", tool)
				}
			}
			for ttl := 9 * time.Second; ; ttl *= 2 {
				turns := takeTurns(t, program, ttl)
				require.IsIncreasing(t, turns)
				if len(turns) == 3 {
					return
				}
				require.Less(t, ttl, 30*time.Second, "who works changes twice, if no term is lost: %v", turns)
			}
		})
	}
}

// takeTurns has two take turns: by a resignation, and since one is frozen. It returns under which
// tokens work was done, one after the other.
func takeTurns(t *testing.T, program []string, ttl time.Duration) (turns []uint64) {
	t.Helper()
	p := newPlace(t)
	one := newPoller(t, p, program, ttl, "one")
	one.awaitWork(t, time.Time{})
	two := newPoller(t, p, program, ttl, "two")
	two.says(t, isHeir)

	status, _, stderr := finish(t, "resign", "--store", p.store, "job")
	require.Zero(t, status, stderr)
	two.awaitWork(t, time.Now())
	one.says(t, isHeir)
	two.send(t, syscall.SIGSTOP)
	stopped := time.Now()
	one.awaitWork(t, stopped)
	two.send(t, syscall.SIGCONT)
	time.Sleep(3 * time.Second)

	for steps := [][]step{one.soFar(), two.soFar()}; len(steps[0])+len(steps[1]) > 0; {
		next := 0
		if len(steps[0]) == 0 || len(steps[1]) > 0 && steps[1][0].at.Before(steps[0][0].at) {
			next = 1
		}
		if token := steps[next][0].token; len(turns) == 0 || turns[len(turns)-1] != token {
			turns = append(turns, token)
		}
		steps[next] = steps[next][1:]
	}
	return turns
}
