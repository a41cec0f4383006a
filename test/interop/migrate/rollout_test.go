//go:build linux

package migrate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// TestMain lets all rollouts run at the same time.
func TestMain(m *testing.M) {
	testenv.Parallel(16)
	os.Exit(m.Run())
}

// A rollout is what is particular to that of a page.
type rollout struct {
	serve func(t *testing.T) (addr string)
	env   string // which variable has the address

	// seen is the value by which a new process says that an old one leads: a
	// regular expression, with HOST for the old one's name.
	seen string

	// read returns what those who only watch the old lock read there while somebody
	// holds it. Nil if nobody can make anything of it.
	read reader

	// mark is what a new leader puts behind its host's name, in the value that they read.
	mark string

	// work is what a new leader, in Go, writes behind the store's guard, again and again.
	// Nil if it writes nothing there.
	work reader

	// line is set if old and new stand in one, and are served in its order.
	line bool

	// denied is what an old process says that waits too long. Empty if it says nothing.
	denied string

	// crash is how long after the crash of an old holder a new one may take, by
	// what the page says.
	crash time.Duration

	// closed is what a new process says while nobody may lead after that crash.
	// Empty if it says nothing.
	closed string

	// also is what else the page says.
	also []scene
}

// A scene is something that may happen in a rollout.
type scene func(t *testing.T, s *stage, bin, addr string, old, next program)

// A reader reads something in a store; nothing is no error.
type reader func(ctx context.Context, addr string) (string, error)

// Each page is followed from its beginning to its end, and back.
func TestEveryPageIsRolledOutAndBackAsItSays(t *testing.T) {
	pages := readPages(t)
	bin := build(t, pages)
	for name, r := range rollouts() {
		p := pages[name]
		for _, lang := range []string{inGo, inShell} {
			for i, old := range p.programs(before, lang) {
				news := p.programs(after, lang)
				require.NotEmpty(t, news, "%s: nothing comes after %s", name, old.id)
				t.Run(fmt.Sprintf("%s/%s %d", name, lang, i+1), func(t *testing.T) {
					t.Parallel()
					if mid := p.programs(between, lang); len(mid) > 0 {
						r.throughBoth(t, bin, old, mid[0], news[0])
						return
					}
					show := p.transcripts()
					if lang == inShell && len(p.programs(before, inGo)) > 0 {
						show = nil // they are about the other one
					}
					r.play(t, bin, old, news[0], show)
				})
			}
		}
	}
}

// play rolls out one new process beside one old one, and back.
func (r rollout) play(t *testing.T, bin string, old, next program, show []transcript) {
	addr := r.serve(t)
	s := newStage(t, r.env+"="+addr)

	first := s.start(bin, old, "old-1")
	s.await(patience, "^old-1 .*leading$")
	r.reads(t, addr, "old-1")
	candidate := s.start(bin, next, "new-1")
	s.await(patience, "waiting for a holder that is not of this library.* value="+strings.ReplaceAll(r.seen, "HOST", "old-1"))
	for _, c := range show {
		c.check(s, bin)
	}

	first.stop()
	s.await(patience, "^new-1 .*leading$")
	first.gone()
	r.reads(t, addr, "new-1"+r.mark)
	if next.Lang == inGo {
		r.works(t, s, addr)
	}
	back := s.start(bin, old, "old-2")
	s.pass(settle)
	require.Equal(t, "new-1", s.leading)
	if r.denied != "" {
		s.await(patience, "^old-2 .*"+r.denied)
	}

	candidate.stop()
	s.await(patience, "^old-2 .*leading$")
	candidate.gone()
	r.reads(t, addr, "old-2")
	candidate = s.start(bin, next, "new-2")
	s.await(patience, "waiting for a holder that is not of this library")

	var last *process
	if r.line {
		s.pass(settle)
		last = s.start(bin, old, "old-3")
		s.pass(settle)
	}

	if old.Lang == inGo { // a command that is killed leaves its child behind
		back.crash()
	} else {
		back.stop()
		back.gone()
	}
	if r.closed != "" {
		s.await(r.crash+patience, r.closed)
		require.Empty(t, s.leading)
	}
	s.await(r.crash+patience, "^new-2 .*leading$")
	candidate.stop()
	candidate.gone()
	if last != nil {
		s.await(patience, "^old-3 .*leading$")
		last.stop()
		last.gone()
	}
	for _, play := range r.also {
		play(t, s, bin, addr, old, next)
	}
}

// throughBoth rolls out a release that takes both locks, and then one that takes
// the new one alone.
func (r rollout) throughBoth(t *testing.T, bin string, old, both, next program) {
	s := newStage(t, r.env+"="+r.serve(t))
	relieve := func(leader *process, p program, host string) *process {
		t.Helper()
		successor := s.start(bin, p, host)
		s.pass(settle)
		require.Equal(t, leader.host, s.leading)
		leader.stop()
		s.await(patience, "^"+host+" .*leading$")
		leader.gone()
		return successor
	}
	leader := s.start(bin, old, "old-1")
	s.await(patience, "^old-1 .*leading$")
	leader = relieve(leader, both, "both-1")
	leader = relieve(leader, old, "old-2") // and back
	leader = relieve(leader, both, "both-2")
	leader = relieve(leader, next, "new-1")
	leader = relieve(leader, both, "both-3") // and back
	leader = relieve(leader, next, "new-2")
	leader.stop()
	leader.gone()
}

// settle is how long one who must not lead is given for doing it all the same.
const settle = 2 * time.Second

// reads checks what old observers read.
func (r rollout) reads(t *testing.T, addr, leader string) {
	t.Helper()
	if r.read == nil {
		return
	}
	value, err := r.read(t.Context(), addr)
	require.NoError(t, err)
	require.Equal(t, leader, value, "what old observers read")
}

// works waits for a write of the leader.
func (r rollout) works(t *testing.T, s *stage, addr string) {
	t.Helper()
	if r.work == nil {
		return
	}
	first, err := r.work(t.Context(), addr)
	require.NoError(t, err)
	for began := time.Now(); time.Since(began) < patience; s.pass(100 * time.Millisecond) {
		last, err := r.work(t.Context(), addr)
		require.NoError(t, err)
		if last != first {
			return
		}
	}
	require.Fail(t, "the leader's writes do not pass the guard")
}

// A transcript is a command, and what it says while an old process leads and a new
// one waits.
type transcript struct {
	command string
	at      string
	lines   []string
}

func (p page) transcripts() []transcript {
	var found []transcript
	for _, b := range p.Blocks {
		if b.Lang != console {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSpace(b.Text), "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				found = append(found, transcript{command: command, at: b.At})
				continue
			}
			last := &found[len(found)-1]
			last.lines = append(last.lines, line)
		}
	}
	return found
}

// check runs the command, if it is elect, and looks for each line in what it says.
// Numbers and spaces may differ, and what stands for "…". Doctor must tell a place
// where no lock is from that of the lock.
func (c transcript) check(s *stage, bin string) {
	s.t.Helper()
	if !strings.HasPrefix(c.command, "elect ") {
		return
	}
	out := c.run(s, bin, "")
	if strings.HasPrefix(c.command, "elect doctor ") {
		require.Contains(s.t, c.run(s, bin, "-elsewhere"), "nobody leads", c.at)
	}
	said := strings.Split(out, "\n")
	for _, line := range c.lines {
		shown := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(general(line)), "…", ".*") + "$")
		require.True(s.t, slices.ContainsFunc(said, func(line string) bool {
			return shown.MatchString(general(line))
		}), "%s shows %q, and it says\n%s", c.at, line, out)
	}
}

// run returns what the command says with something behind its name.
func (c transcript) run(s *stage, bin, behind string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", c.command+behind)
	cmd.Env = append(slices.Clone(s.env), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s: %s", c.at, out)
	return string(out)
}
