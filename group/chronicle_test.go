package group_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/boottime"
)

// A note is one thing that a process has seen or done.
type note struct {
	Who   string // the process, another one after each start
	Kind  string
	Group group.Group
	At    time.Duration // by a clock that all processes of this machine share
}

// The kinds of notes.
const (
	in   = "in"   // it is in the group, as Watch says: the zero one is none
	led  = "led"  // lead was called
	told = "told" // lead's context has ended; it may be noted late
	done = "done" // lead returns
)

// A chronicle is what several processes have noted: of each of them in order.
type chronicle struct {
	mu    sync.Mutex
	notes []note
}

func (c *chronicle) note(n note) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, n)
}

func (c *chronicle) all() []note {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// forget drops all notes.
func (c *chronicle) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = nil
}

// of returns the notes of a process of some kind.
func (c *chronicle) of(who, kind string) []note {
	return slices.DeleteFunc(c.all(), func(n note) bool { return n.Who != who || n.Kind != kind })
}

// String shows the last notes.
func (c *chronicle) String() string {
	all := c.all()
	lines := []string{}
	for _, n := range all[max(0, len(all)-100):] {
		lines = append(lines, fmt.Sprint(n))
	}
	return strings.Join(lines, "\n")
}

// now is which group each process was in last.
func (c *chronicle) now() map[string]group.Group {
	last := map[string]group.Group{}
	for _, n := range c.all() {
		if n.Kind == in {
			last[n.Who] = n.Group
		}
	}
	return last
}

// together reports whether some processes, and nobody else, are in one group now, and its leader
// does its work.
func (c *chronicle) together(who ...string) bool {
	now := c.now()
	g := now[who[0]]
	for _, w := range who {
		if now[w].Number != g.Number || len(g.Members) != len(who) {
			return false
		}
	}
	works := false
	for _, n := range c.all() {
		if n.Group.Number == g.Number && g.Number != "" && n.Kind != in {
			works = n.Kind == led
		}
	}
	return works
}

// findings are what is wrong with the notes, each in a line. The ID of a process is its Who up to a
// "#".
func (c *chronicle) findings() string {
	var wrong []string
	groups := map[group.Number]group.Group{}
	type state struct {
		works   group.Number
		entered map[group.Number]bool
		led     map[group.Number]bool
	}
	states := map[string]*state{}
	for i, n := range c.all() {
		say := func(what string) { wrong = append(wrong, fmt.Sprintf("%d %v: %s", i, n, what)) }
		s := states[n.Who]
		if s == nil {
			s = &state{entered: map[group.Number]bool{}, led: map[group.Number]bool{}}
			states[n.Who] = s
		}
		id, _, _ := strings.Cut(n.Who, "#")
		g, number := n.Group, n.Group.Number
		if number == "" {
			if n.Kind != in || g.Leader != "" || g.Members != nil {
				say("a group without a number")
			}
			continue
		}
		before, known := groups[number]
		groups[number] = g
		switch {
		case known && (before.Leader != g.Leader || !slices.Equal(before.Members, g.Members)):
			say(fmt.Sprintf("others know it as %v", before))
		case !slices.Contains(g.Members, id) || !slices.Contains(g.Members, g.Leader):
			say("the process, or the leader, is no member")
		case n.Kind != in && g.Leader != id:
			say("it does not lead that")
		case n.Kind != told && s.works != "" && s.works != number:
			say("its work for another group has not returned")
		case n.Kind == in && s.entered[number]:
			say("it was in that before")
		case n.Kind == led && s.led[number]:
			say("it has led that before")
		}
		switch n.Kind {
		case in:
			s.entered[number] = true
		case led:
			s.led[number], s.works = true, number
		case done:
			s.works = ""
		}
	}
	return strings.Join(wrong, "\n")
}

// An actor is a member, and what is called on it.
type actor struct {
	*group.Member
	who    string
	cancel context.CancelFunc
	calls  sync.WaitGroup
	ran    error // what Run has returned
}

// work is what a lead does: it ends with its context.
type work func(ctx context.Context, g group.Group) error

func obey(ctx context.Context, _ group.Group) error {
	<-ctx.Done()
	return ctx.Err()
}

// act has a member lead and watch, and note what it does.
func act(m *group.Member, who string, note func(note), do work) *actor {
	ctx, cancel := context.WithCancel(context.Background())
	a := &actor{Member: m, who: who, cancel: cancel}
	a.calls.Go(func() {
		a.ran = m.Run(ctx, func(ctx context.Context, g group.Group) error {
			note(noteOf(who, led, g))
			stop := context.AfterFunc(ctx, func() { note(noteOf(who, told, g)) })
			defer stop()
			err := do(ctx, g)
			note(noteOf(who, done, g))
			return err
		})
	})
	a.calls.Go(func() {
		for g := range m.Watch(ctx) {
			note(noteOf(who, in, g))
		}
	})
	return a
}

func noteOf(who, kind string, g group.Group) note {
	return note{Who: who, Kind: kind, Group: g, At: boottime.Now()}
}

// quit ends a member in order.
func (a *actor) quit() error {
	a.cancel()
	a.calls.Wait()
	return a.Close()
}
