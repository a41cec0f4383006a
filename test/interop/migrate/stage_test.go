//go:build linux

package migrate

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A stage is where old and new processes run at the same time. All write to one
// pipe, so that their lines have one order: the one in which they were written.
type stage struct {
	t     *testing.T
	dir   string   // working directory of the processes
	env   []string // of the processes
	out   *os.File
	lines chan string

	leading string   // whose work goes on
	told    []string // the lines so far
}

func newStage(t *testing.T, env ...string) *stage {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	s := &stage{t: t, dir: t.TempDir(), env: append(os.Environ(), env...), out: w, lines: make(chan string, 10_000)}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "report.sh"), []byte(report), 0o700))
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(r); in.Scan(); {
			s.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		w.Close()
		<-read // when the last process has ended
		r.Close()
		if t.Failed() {
			t.Logf("what the processes said:\n%s", strings.Join(s.told, "\n"))
		}
	})
	return s
}

// report is the job of those who run a command under a lock. It ends when the
// file "done" tells it to, or when it is told to stop.
const report = `#!/bin/sh
trap 'kill $!; echo "$HOSTNAME stopped"; exit 1' TERM INT
echo "$HOSTNAME leading"
while ! [ -e "$HOSTNAME.done" ]; do sleep 0.1 & wait $!; done
echo "$HOSTNAME stopped"
`

// A process is one of the old kind or the new.
type process struct {
	*stage
	host  string
	lang  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of its end
}

// start runs a program of a page on a host of its own, going by the name.
func (s *stage) start(bin string, p program, host string) *process {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(bin, p.id))
	if p.Lang == inShell {
		cmd = exec.Command("sh", "-c", "exec "+p.Text)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.out, s.out
	cmd.Env = append(slices.Clone(s.env), "HOSTNAME="+host, "PATH="+bin+":"+os.Getenv("PATH"))
	testenv.Guard(s.t, cmd)
	require.NoError(s.t, cmd.Start())
	child := &process{stage: s, host: host, lang: p.Lang, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(child.ended)
		child.err = cmd.Wait()
	}()
	s.t.Cleanup(func() {
		child.finish()
		select {
		case <-child.ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-child.ended
		}
	})
	return child
}

// finish has it end in good order: as an orchestrator tells a service, or as a job
// that is done.
func (p *process) finish() {
	if p.lang == inShell {
		_ = os.WriteFile(filepath.Join(p.dir, p.host+".done"), nil, 0o600)
		return
	}
	p.signal(syscall.SIGTERM)
}

func (p *process) signal(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
}

// stop waits until a leader has stopped its work and ended.
func (p *process) stop() {
	p.t.Helper()
	p.finish()
	p.await(patience, p.host+" .*stopped")
}

// gone waits until the process has ended, with what is a success among its kind.
func (p *process) gone() {
	p.t.Helper()
	select {
	case <-p.ended:
		require.NoError(p.t, p.err, "%s ended with an error", p.host)
	case <-time.After(patience):
		require.Fail(p.t, "it does not end", p.host)
	}
}

// crash kills the process, and its work with it.
func (p *process) crash() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	<-p.ended
	p.pass(0)
	require.Equal(p.t, p.host, p.leading, "it was to be the leader that crashes")
	p.leading = ""
}

// patience is how long a change may take on a busy machine that needs no time out.
const patience = 15 * time.Second

// await takes in what the processes say until a line matches, and returns it. Each
// line must keep to the rule: one leads at a time.
func (s *stage) await(within time.Duration, pattern string) string {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		select {
		case line := <-s.lines:
			s.judge(line)
			if want.MatchString(line) {
				return line
			}
		case <-late.C:
			require.Fail(s.t, "nobody said it in time", "want %q within %v", pattern, within)
		}
	}
}

// pass takes in what they say for a time.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case line := <-s.lines:
			s.judge(line)
			continue
		default:
		}
		select {
		case line := <-s.lines:
			s.judge(line)
		case <-over.C:
			return
		}
	}
}

var change = regexp.MustCompile(`^(\S+) (?:.* )?(leading|stopped)$`)

func (s *stage) judge(line string) {
	s.t.Helper()
	s.told = append(s.told, fmt.Sprintf("%s  %s", time.Now().Format("05.000"), line))
	m := change.FindStringSubmatch(line)
	switch {
	case m == nil:
	case m[2] == "leading":
		require.Empty(s.t, s.leading, "two lead: %s began", m[1])
		s.leading = m[1]
	default:
		require.Equal(s.t, m[1], s.leading, "it stopped what it had not begun")
		s.leading = ""
	}
}
