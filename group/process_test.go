package group_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
)

// processVariable tells a copy of this test binary which process it is.
const processVariable = "GROUP_TEST_PROCESS"

// patience is what a busy machine may add to anything that is owed.
const patience = time.Minute

// A part is what a process is told.
type part struct {
	Who       string
	ID        string
	Peers     []string
	Cluster   string
	Cert, Key string
	CA        string
	Interval  time.Duration
	Slow      time.Duration // how long its work takes to stop
}

// play is a process that leads and watches until its input ends, and tells its notes.
func play(text string) {
	if err := perform(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func perform(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	files := &group.Files{Cert: p.Cert, Key: p.Key, CA: p.CA}
	m, err := group.New(&group.Options{
		ID: p.ID, Peers: p.Peers, Cluster: p.Cluster, GetTLS: files.TLS, Interval: p.Interval,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("self", p.Who),
	})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	tell := func(n note) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(n) // nobody hears it
	}
	a := act(m, p.Who, tell, slow(p.Slow))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return a.quit()
}

// A process is one seen from outside.
type process struct {
	part
	host *testenv.Host // nil: this machine
	cmd  *exec.Cmd
	in   io.Closer
	said testenv.Speech
	all  sync.WaitGroup
}

// processes are several, and what they have noted.
type processes struct {
	*testing.T
	chronicle
	starts int
	list   []*process
}

// launch starts processes with these IDs, on these hosts if there are any.
func launch(t *testing.T, ids []string, hosts []*testenv.Host, certify func(i int) (cert, key, ca string)) *processes {
	t.Helper()
	ps := &processes{T: t}
	t.Cleanup(func() {
		for _, p := range ps.list {
			p.in.Close()
			p.all.Wait()
			_ = p.cmd.Wait() // it may have been killed
			if t.Failed() {
				t.Logf("%s said:\n%s", p.Who, &p.said)
			}
		}
		require.Empty(t, ps.findings())
	})
	for i, id := range ids {
		p := &process{part: part{ID: id, Peers: ids, Cluster: "test", Interval: 200 * time.Millisecond}}
		p.Cert, p.Key, p.CA = certify(i)
		if hosts != nil {
			p.host = hosts[i]
		}
		ps.list = append(ps.list, p)
		ps.start(p)
	}
	return ps
}

// start starts a process, for the first time or again.
func (ps *processes) start(p *process) {
	ps.Helper()
	ps.starts++
	p.Who = fmt.Sprintf("%s#%d", p.ID, ps.starts)
	var err error
	p.cmd, err = witness.Again(processVariable, p.part)
	require.NoError(ps, err)
	p.cmd.Stderr = &p.said
	if p.host != nil {
		p.host.Command(p.cmd)
	}
	p.in, err = p.cmd.StdinPipe()
	require.NoError(ps, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(ps, err)
	require.NoError(ps, p.cmd.Start())
	p.all.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var n note
			if json.Unmarshal(lines.Bytes(), &n) == nil { // but for a line that was cut off by a kill
				ps.note(n)
			}
		}
	})
}

// kill ends a process as a power cut would.
func (ps *processes) kill(p *process) {
	ps.Helper()
	require.NoError(ps, p.cmd.Process.Kill())
	p.all.Wait()
	_ = p.cmd.Wait() // it was killed
}

// quit ends a process in order.
func (ps *processes) quit(p *process) {
	ps.Helper()
	p.in.Close()
	p.all.Wait()
	require.NoError(ps, p.cmd.Wait())
}

// merged is the longest time in which groups merge.
func merged() time.Duration {
	return group.Options{Interval: 200 * time.Millisecond}.Merged()
}

func whoOf(some []*process) (who []string) {
	for _, p := range some {
		who = append(who, p.Who)
	}
	return who
}

// merge waits until some processes are one group, and returns the notes that show it: on a busy
// machine later ones may not.
func (ps *processes) merge(some ...*process) (seen *chronicle) {
	ps.Helper()
	who, began := whoOf(some), time.Now()
	require.Eventually(ps, func() bool {
		seen = &chronicle{notes: ps.all()}
		return seen.together(who...)
	}, merged()+patience, 5*time.Millisecond, "%v are no group: %v", who, &ps.chronicle)
	ps.Logf("%v are one group after %v", who, time.Since(began).Round(time.Millisecond))
	return seen
}

// leader returns the leader of the group that some processes are, and the others.
func (ps *processes) leader(seen *chronicle, some ...*process) (leader *process, others []*process) {
	ps.Helper()
	g := seen.now()[some[0].Who]
	for _, p := range some {
		if p.ID == g.Leader {
			leader = p
		} else {
			others = append(others, p)
		}
	}
	require.NotNil(ps, leader, "%v", g)
	return leader, others
}

func TestProcessesMergeAndGoOnWithoutThoseThatAreKilled(t *testing.T) {
	t.Parallel()
	authority := testenv.NewAuthority(t)
	cert, key, ca := authority.Files("127.0.0.1")
	ids := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	ps := launch(t, ids, nil, func(int) (string, string, string) { return cert, key, ca })
	a, b, c := ps.list[0], ps.list[1], ps.list[2]
	leader, others := ps.leader(ps.merge(a, b, c), a, b, c)
	ps.kill(leader)
	ps.merge(others...)
	ps.start(leader)
	ps.merge(a, b, c)
	ps.kill(others[0])
	ps.merge(leader, others[1])
	ps.start(others[0])
	ps.merge(a, b, c)
	ps.quit(leader)
	ps.merge(others...)
	ps.start(leader)
	ps.merge(a, b, c)

	for _, p := range ps.list { // a power cut of everything
		ps.kill(p)
	}
	for _, p := range ps.list {
		ps.start(p)
	}
	ps.merge(a, b, c)
}
