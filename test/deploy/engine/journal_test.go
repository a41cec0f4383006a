package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A line is what a container printed.
type line struct {
	container string
	at        time.Time // by the clock of the host: the program's own stamp, else docker's
	seen      time.Time // by this process's monotonic clock
	text      string
}

func (l line) String() string {
	return fmt.Sprintf("%s %s %s", l.at.Format("15:04:05.000"), l.container, l.text)
}

// token is the token that a line tells.
func (l line) token() string {
	_, token, _ := strings.Cut(l.text, "token=")
	token, _, _ = strings.Cut(token, " ")
	return token
}

// leads reports whether a worker, or a job, says that it begins.
func (l line) leads() bool {
	return strings.HasPrefix(l.text, "leading token=") || strings.Contains(l.text, " msg=leading token=")
}

func (l line) stopped() bool {
	return strings.HasPrefix(l.text, "stopped token=") || strings.Contains(l.text, " msg=stopped token=")
}

func (l line) works() bool {
	return strings.HasPrefix(l.text, "working token=") || strings.Contains(l.text, " msg=working token=")
}

// A journal has all that containers print.
type journal struct {
	mu    sync.Mutex
	lines []line
	more  chan struct{} // closed at the next line
}

func newJournal() *journal { return &journal{more: make(chan struct{})} }

// follow writes down what a container prints from now on, or, if it is new, from the
// start, until it ends.
func (j *journal) follow(t testing.TB, container, since string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "docker", "logs", "--follow", "--timestamps", "--since="+since, container)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(out); in.Scan(); {
			j.add(container, in.Text())
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = cmd.Wait() // docker was killed
	})
}

func (j *journal) add(container, text string) {
	l := line{container: container, seen: time.Now()}
	stamp, text, _ := strings.Cut(text, " ")
	l.at, _ = time.Parse(time.RFC3339Nano, stamp)
	l.text = text
	if own, found := strings.CutPrefix(text, "time="); found {
		own, _, _ = strings.Cut(own, " ")
		if at, err := time.Parse(time.RFC3339Nano, own); err == nil {
			l.at = at
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, l)
	close(j.more)
	j.more = make(chan struct{})
}

// find returns the first line, of those after the first skip, that is wanted.
func (j *journal) find(skip int, wanted func(line) bool) (l line, found bool, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.lines[skip:], wanted)
	if i < 0 {
		return line{}, false, j.more
	}
	return j.lines[skip+i], true, j.more
}

// mark is what to skip for what comes from now on.
func (j *journal) mark() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.lines)
}

// await returns the first wanted line after a mark, which has to come in time.
func (j *journal) await(t testing.TB, mark int, within time.Duration, what string, wanted func(line) bool) line {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		l, found, more := j.find(mark, wanted)
		if found {
			return l
		}
		select {
		case <-more:
		case <-deadline.C:
			require.FailNow(t, "not within "+within.String()+": "+what, j.String())
		}
	}
}

// sorted returns the lines by their stamps.
func (j *journal) sorted() []line {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(j.lines), func(a, b line) int { return a.at.Compare(b.at) })
}

// String is what failures show: all but the work.
func (j *journal) String() string {
	var b strings.Builder
	for _, l := range j.sorted() {
		if !l.works() {
			fmt.Fprintln(&b, l)
		}
	}
	return b.String()
}

// last returns the last line that is wanted.
func (j *journal) last(wanted func(line) bool) (last line) {
	for _, l := range j.sorted() {
		if wanted(l) {
			last = l
		}
	}
	return last
}
