//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/cmd/elect/internal/peers"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/witness"
)

// A Meeting is five processes that form groups while their network is partitioned and healed, and one
// of them is killed.
type Meeting struct {
	Interval time.Duration
	Slack    time.Duration // how much later than promised things may happen, on a busy machine
	Folder   string        // gets their certificates: one that is empty
	// Command returns the command that runs a process.
	Command func(MemberPart) *exec.Cmd
	// Tell shows an event as it happens.
	Tell func(history.Event)

	troupe
	net     *network
	folders map[string]string
	killed  []*witness.Process
	census  census
	history history.History
}

// The processes of a meeting.
func everybody() []string { return []string{"anna", "ben", "cleo", "dora", "emil"} }

// Within is the longest time in which those that reach each other have become one group.
func (m *Meeting) Within() time.Duration {
	return invitation.TimingOf(m.Interval, 10*m.Interval).Merged() // which is what group.Options has by default
}

// Judge checks what happened at a meeting against what groups promise.
func (m *Meeting) Judge(h history.History) oracle.Findings {
	return oracle.Judge(h, LeaderPerNumber, MembersAgree, OneAfterAnother, GroupPerPart)
}

// Perform has the processes meet, and returns what happened. It leaves no process behind, whatever
// happens; what happened until then is returned with an error too.
func (m *Meeting) Perform(ctx context.Context) (history.History, error) {
	runtime.LockOSThread() // the processes die with this thread
	defer runtime.UnlockOSThread()
	m.troupe, m.census = newTroupe(m.note), newCensus()
	m.history = history.History{About: history.About{Title: "elect demo groups", Slack: m.Slack}}
	m.patience = m.Within() + m.Slack + 5*time.Second
	if err := m.certify(); err != nil {
		return m.history, err
	}
	var err error
	if m.net, err = openNetwork(ctx); err != nil {
		return m.history, err
	}
	err = m.meet(ctx)
	m.note(history.Event{At: boottime.Now(), Kind: history.Left}) // the timeline goes on until here
	m.leave()
	return m.history, errors.Join(err, m.net.close())
}

// certify makes a certificate for each process, as elect peers init does.
func (m *Meeting) certify() error {
	plan := peers.Plan{Cluster: "demo", Peers: addresses(everybody()), ValidFor: peers.Span(time.Hour)}
	_, issued, err := peers.Init(m.Folder, plan, time.Now())
	m.folders = map[string]string{}
	for _, issue := range issued {
		m.folders[nameOf(issue.Name)] = issue.Folder
	}
	return err
}

// sideBySide says what groups are for.
const sideBySide = `two groups lead side by side
This is what groups are for: work goes on in each part. What must have one leader
belongs in an election: elect demo shows one`

// meet has the processes form groups, and waits each time until they have.
func (m *Meeting) meet(ctx context.Context) error {
	all := everybody()
	single := [][]string{}
	for _, who := range all {
		single = append(single, []string{who})
	}
	err := m.step(ctx, single, "five groups of one", func() error {
		m.part("nobody reaches anybody yet", single...)
		for _, who := range all {
			if err := m.start(who); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	whole := func() error { m.heal("the network is whole", all); return nil }
	if err := m.step(ctx, [][]string{all}, "one group", whole); err != nil {
		return err
	}
	parts := [][]string{all[:3], all[3:]}
	err = m.step(ctx, parts, sideBySide, func() error {
		m.part("the network is partitioned: "+value(parts), parts...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := m.step(ctx, [][]string{all}, "one group again", whole); err != nil {
		return err
	}
	leader := m.census.in[all[0]].Leader
	rest := slices.DeleteFunc(everybody(), func(who string) bool { return who == leader })
	if err := m.step(ctx, [][]string{rest}, "the others are one group", func() error { m.kill(leader); return nil }); err != nil {
		return err
	}
	return m.step(ctx, [][]string{all}, leader+" is back: one group", func() error { return m.start(leader) })
}

// step does something, waits for the groups that it has to lead to, and lets them work for a while.
func (m *Meeting) step(ctx context.Context, groups [][]string, outcome string, do func() error) error {
	begin := boottime.Now()
	m.note(history.Event{At: begin, Kind: history.Grouped, Value: value(groups), Within: m.Within()})
	if err := do(); err != nil {
		return err
	}
	if err := m.until(ctx, func() bool { return m.census.are(groups) }); err != nil {
		return err
	}
	now := boottime.Now()
	m.note(history.Event{At: now, Kind: history.Met, Within: now - begin, Text: outcome})
	if err := m.pass(ctx, 5*m.Interval); err != nil {
		return err
	}
	return m.until(ctx, func() bool { return m.census.are(groups) }) // a busy machine may have parted them
}

// start starts a process, for the first time or again.
func (m *Meeting) start(who string) error {
	part := MemberPart{ID: who, Names: everybody(), Network: m.net.addr(), Folder: m.folders[who], Interval: m.Interval}
	return m.enter(who, m.Command(part))
}

// kill ends a process as a power cut would.
func (m *Meeting) kill(who string) {
	m.note(history.Event{At: boottime.Now(), Who: who, Kind: history.Killed})
	m.cast[who].Signal(syscall.SIGKILL)
	m.killed = append(m.killed, m.cast[who])
	delete(m.cast, who)
}

func (m *Meeting) part(text string, parts ...[]string) { m.rewire(history.Fault, text, parts) }

func (m *Meeting) heal(text string, all []string) { m.rewire(history.Healed, text, [][]string{all}) }

// rewire has processes reach each other only within a part.
func (m *Meeting) rewire(what history.Kind, text string, parts [][]string) {
	m.note(history.Event{At: boottime.Now(), Kind: what, Text: text})
	numbers := [][]int{}
	for _, part := range parts {
		numbers = append(numbers, []int{})
		for _, who := range part {
			numbers[len(numbers)-1] = append(numbers[len(numbers)-1], slices.Index(everybody(), who))
		}
	}
	m.net.part(numbers)
}

func (m *Meeting) note(e history.Event) {
	if e.Kind == history.Ready {
		m.net.place(slices.Index(everybody(), e.Who), e.Value)
	}
	m.history.Events = append(m.history.Events, e)
	m.census.take(e)
	m.Tell(e)
}

// leave ends all processes at once, so that no more groups form, and waits for them.
func (m *Meeting) leave() {
	var all sync.WaitGroup
	for _, p := range m.cast {
		p.Signal(syscall.SIGKILL)
		m.killed = append(m.killed, p)
	}
	for _, p := range m.killed {
		all.Go(func() {
			defer p.Stdin.Close()
			_ = p.Wait() // it was killed
		})
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		all.Wait()
	}()
	for {
		select {
		case e := <-m.events:
			m.history.Events = append(m.history.Events, e)
		case <-gone:
			return
		}
	}
}

// value writes groups as [history.Grouped] has them.
func value(groups [][]string) string {
	parts := []string{}
	for _, group := range groups {
		parts = append(parts, strings.Join(group, " "))
	}
	return strings.Join(parts, " | ")
}

// groupsOf reads what value has written.
func groupsOf(value string) (groups [][]string) {
	for part := range strings.SplitSeq(value, " | ") {
		groups = append(groups, strings.Fields(part))
	}
	return groups
}

// A census is which group each process is in, and for which group it works as its leader.
type census struct {
	in    map[string]history.Group
	works map[string]string
}

func newCensus() census { return census{map[string]history.Group{}, map[string]string{}} }

func (c census) take(e history.Event) {
	switch e.Kind {
	case history.Joined:
		c.in[e.Who] = e.Group
	case history.Started:
		c.works[e.Who] = e.Group.Number
	case history.Finished:
		delete(c.works, e.Who)
	case history.Killed, history.Ready:
		delete(c.in, e.Who)
		delete(c.works, e.Who)
	}
}

// are reports whether some processes are in these groups, each with a leader that works.
func (c census) are(groups [][]string) bool {
	for _, members := range groups {
		g := c.in[members[0]]
		if !slices.Equal(g.Members, members) || c.works[g.Leader] != g.Number {
			return false
		}
		for _, who := range members {
			if c.in[who].Number != g.Number {
				return false
			}
		}
	}
	return true
}

// describe names a group for people.
func describe(g history.Group) string {
	return fmt.Sprintf("%s leads %s", g.Leader, strings.Join(g.Members, ", "))
}
