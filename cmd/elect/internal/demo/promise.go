//go:build unix

package demo

import (
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// LeaderPerNumber is the rule that each group number has at most one leader, which leads it once.
func LeaderPerNumber(e oracle.Evidence) oracle.Finding {
	f := finding("one leader per number")
	leads := map[string]string{}
	for _, started := range e.Of("", history.Started) {
		number := started.Group.Number
		switch other, known := leads[number]; {
		case known && other == started.Who:
			return broken(f, "%s led group %s twice", other, number)
		case known:
			return broken(f, "%s and %s led group %s", other, started.Who, number)
		}
		leads[number] = started.Who
	}
	if len(leads) == 0 {
		return silent(f, "nobody led")
	}
	return kept(f, len(leads), "%d groups were led, each number by one process", len(leads))
}

// MembersAgree is the rule that all that are in a group, or lead it, have the same leader and the
// same members, themselves among them.
func MembersAgree(e oracle.Evidence) oracle.Finding {
	f := finding("its members agree")
	known, first := map[string]history.Group{}, map[string]string{}
	count := 0
	for _, said := range e.Of("", history.Joined, history.Started, history.Finished) {
		g := said.Group
		if g.Number == "" {
			continue
		}
		before, ok := known[g.Number]
		if !ok {
			known[g.Number], first[g.Number], before = g, said.Who, g
		}
		switch {
		case g.Leader != before.Leader || !slices.Equal(g.Members, before.Members):
			return broken(f, "of group %s, %s says that %s, and %s that %s", g.Number, first[g.Number], describe(before), said.Who, describe(g))
		case !slices.Contains(g.Members, said.Who) || !slices.Contains(g.Members, g.Leader):
			return broken(f, "%s is in group %s, in which %s", said.Who, g.Number, describe(g))
		case said.Kind != history.Joined && said.Who != g.Leader:
			return broken(f, "%s works as the leader of group %s, in which %s", said.Who, g.Number, describe(g))
		}
		count++
	}
	if count == 0 {
		return silent(f, "nobody was in a group")
	}
	return kept(f, len(known), "%d groups, and what was said of them %d times", len(known), count)
}

// OneAfterAnother is the rule that a process is in each group once, and that it had left the one
// before, and its work for that had returned, when anybody was in the next.
func OneAfterAnother(e oracle.Evidence) oracle.Finding {
	f := finding("out of one, into the next")
	formed, was := map[string]time.Duration{}, map[string]map[string]bool{}
	count := 0
	for _, ev := range e.Of("", history.Joined, history.Ready) {
		number := ev.Group.Number
		switch {
		case ev.Kind == history.Ready: // it is another process
			was[ev.Who] = map[string]bool{}
			continue
		case number == "":
			continue
		case was[ev.Who][number]:
			return broken(f, "%s was in group %s, left it, and was in it again", ev.Who, number)
		case was[ev.Who] == nil:
			return broken(f, "%s was in a group before it was started", ev.Who)
		}
		was[ev.Who][number] = true
		if _, ok := formed[number]; !ok {
			formed[number] = ev.At
		}
		for _, busy := range worksFor(e.Of(ev.Who), formed[number]) {
			if busy != number {
				return broken(f, "%s still worked as the leader of group %s when group %s, which it is in, began", ev.Who, busy, number)
			}
		}
		count++
	}
	if count == 0 {
		return silent(f, "nobody was in a group")
	}
	return kept(f, count, "%d times a process was in a group, and all its work before had returned", count)
}

// worksFor returns the groups for which a process works as their leader at a time. Events are
// those of the process.
func worksFor(events []history.Event, at time.Duration) (numbers []string) {
	for _, e := range events {
		switch {
		case e.At > at:
			return numbers
		case e.Kind == history.Started:
			numbers = append(numbers, e.Group.Number)
		case e.Kind == history.Finished:
			numbers = slices.DeleteFunc(numbers, func(n string) bool { return n == e.Group.Number })
		case e.Kind == history.Ready:
			numbers = nil
		}
	}
	return numbers
}

// GroupPerPart is the rule that processes that reach each other form one group in time, with a leader
// that works, and that each part of the network has a group at the same time.
func GroupPerPart(e oracle.Evidence) oracle.Finding {
	f := finding("one group per part")
	now := newCensus()
	var due history.Event
	var longest, within time.Duration
	count := 0
	for _, ev := range e.Events {
		now.take(ev)
		if ev.Kind == history.Grouped {
			if due.Value != "" {
				return broken(f, "%s never had a group each", due.Value)
			}
			due, within = ev, ev.Within
		}
		if due.Value == "" || !now.are(groupsOf(due.Value)) {
			continue
		}
		took := ev.At - due.At
		if took > within+e.Slack {
			return broken(f, "%s: after %.2f s; promised within %v, and %v for a slow machine", due.Value, took.Seconds(), within, e.Slack)
		}
		longest, due = max(longest, took), history.Event{}
		count++
	}
	switch {
	case due.Value != "":
		return broken(f, "%s never had a group each", due.Value)
	case count == 0:
		return silent(f, "nothing was to be seen")
	}
	return kept(f, count, "%d times, within %.2f s; promised within %v", count, longest.Seconds(), within)
}
