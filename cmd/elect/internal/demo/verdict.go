// Package demo plays elections of three processes, of which some are killed, put to
// sleep or asked to give way, and meetings of five that form groups in a network that is
// parted. It has their records judged (packages history and oracle).
package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// OnlyHeirs is the rule that nobody succeeds a leader who was not heir before, unless it came back.
func OnlyHeirs(e oracle.Evidence) oracle.Finding {
	f := finding("only the heir is elected")
	n := 0
	for i, t := range e.Terms {
		if i == 0 || cameBack(e.Terms[i-1], t) {
			continue
		}
		last := ""
		for _, became := range e.Of(t.Who, history.Became) {
			if became.At <= t.Begin && became.Value != string(election.RoleLeader) {
				last = became.Value
			}
		}
		if last != history.Heir {
			return broken(f, "%s was elected as %s", t.Who, last)
		}
		n++
	}
	if n == 0 {
		return silent(f, "nobody succeeded anybody")
	}
	return kept(f, n, "%d successors, each of whom was next", n)
}

// cameBack reports whether a leader that had lost its term is the next to lead. A campaign claims the
// leader's safe before it competes for the heir's, and there may be no heir yet: a leader that calls
// for one takes the heir's place with its call.
func cameBack(from, to history.Stretch) bool { return lost(from) && to.Who == from.Who }

// lost reports whether a term ended although its leader did not give it up.
func lost(t history.Stretch) bool { return strings.Contains(t.Cause, election.ErrLost.Error()) }

// NeverEmpty returns the rule that the safe is never seen empty when a leader gives
// it up in favour of its heir, which is to happen so often at least.
func NeverEmpty(least int) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := finding("handed over, never empty")
		held := e.Of("", history.Holds)
		n := 0
		for i := 1; i < len(e.Terms); i++ {
			a, b := e.Terms[i-1], e.Terms[i]
			if !a.Ended || a.End > b.Begin || !strings.Contains(a.Cause, election.ErrResigned.Error()) {
				continue // that was no hand-over
			}
			if err := direct(held, a.Token, b.Token); err != nil {
				return broken(f, "from %s to %s: %v", a.Who, b.Who, err)
			}
			n++
		}
		if n < least {
			return silent(f, fmt.Sprintf("%d times only", n))
		}
		return kept(f, n, "%d times, and a watch never saw the safe empty", n)
	}
}

// direct looks whether a safe held one token right after the other.
func direct(held []history.Event, from, to uint64) error {
	var last, before history.Event
	for _, e := range held {
		if e.Token == last.Token {
			continue // the same, with another value
		}
		last, before = e, last
		switch {
		case e.Token != to:
		case before.Token == from:
			return nil
		case before.Token == 0:
			return fmt.Errorf("the safe was empty for %v", (e.At - before.At).Round(time.Millisecond))
		default:
			return fmt.Errorf("token %d came between", before.Token)
		}
	}
	return fmt.Errorf("the watch did not see token %d", to)
}

// RightNext returns the rule that whoever leads is the one whom the order puts
// before all others that live, or whom the leader before was asked to hand over to. A leader that
// has lost its term hands over to nobody, and may come back.
func RightNext(parts []Part) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := finding("the right one is next")
		heirs := []string(nil) // of the leader
		n := 0
		for i, t := range e.Terms {
			if i > 0 && !cameBack(e.Terms[i-1], t) {
				if err := rightNext(e, parts, heirs, e.Terms[i-1], t); err != nil {
					return broken(f, "%v", err)
				}
				n++
			}
			if own := partOf(parts, t.Who).Heirs; len(own) > 0 {
				heirs = own
			}
		}
		if n == 0 {
			return silent(f, "nobody succeeded anybody")
		}
		return kept(f, n, "%s", strings.Join(leaders(e), ", then "))
	}
}

func rightNext(e oracle.Evidence, parts []Part, heirs []string, from, to history.Stretch) error {
	for _, asked := range e.Of(from.Who, history.Asked) {
		if from.Begin <= asked.At && asked.At <= from.End && asked.Value != "" && !lost(from) {
			if asked.Value != to.Who {
				return fmt.Errorf("%s was asked to hand over to %s, and %s led", from.Who, asked.Value, to.Who)
			}
			return nil
		}
	}
	leader, next := partOf(parts, from.Who).contender(), partOf(parts, to.Who).contender()
	leader.Heirs = heirs
	for _, p := range parts {
		before := p.Order.Succession()
		if p.ID != from.Who && stands(e, p.ID, from.End) && before(leader, p.contender(), next) {
			return fmt.Errorf("after %s came %s, and %s was before", from.Who, to.Who, p.ID)
		}
	}
	return nil
}

func partOf(parts []Part, id string) Part {
	for _, p := range parts {
		if p.ID == id {
			return p
		}
	}
	return Part{ID: id}
}

// stands reports whether a candidate lives at a time, and has told that it stands
// for the safe: a TTL before, so that it is known on a busy machine too.
func stands(e oracle.Evidence, who string, at time.Duration) bool {
	stands := false
	for _, ev := range e.Of(who, history.Became, history.Killed, history.Stopped) {
		if ev.At < at {
			stands = ev.Kind == history.Became && ev.At < at-e.TTL
		}
	}
	return stands
}

// leaders returns who led, in order.
func leaders(e oracle.Evidence) []string {
	names := []string{}
	for _, t := range e.Terms {
		names = append(names, t.Who)
	}
	return names
}

// InTurn returns the rule that these lead, one after the other.
func InTurn(want ...string) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := finding("each in turn")
		expected, led := strings.Join(want, ", "), strings.Join(leaders(e), ", ")
		if led != expected {
			return broken(f, "it was to be %s, and was %s", expected, led)
		}
		return kept(f, len(want), "%s", led)
	}
}

// InTimeByRank returns the rule that a candidate, the highest, leads soon after it
// came or was woken, and leads at last.
func InTimeByRank(who string, within time.Duration) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := finding("the highest leads")
		waits := []string{}
		for _, came := range e.Of(who, history.Ready, history.Woken) {
			i := 0
			for i < len(e.Terms) && (e.Terms[i].Who != who || e.Terms[i].Begin < came.At) {
				i++
			}
			if i == len(e.Terms) {
				return broken(f, "%s never led after it was %s", who, came.Kind)
			}
			took := e.Terms[i].Begin - came.At
			if took > within+e.Slack {
				return broken(f, "%s led %.2f s after it was %s; promised within %v, and %v for a slow machine", who, took.Seconds(), came.Kind, within, e.Slack)
			}
			waits = append(waits, fmt.Sprintf("%.2f s after it was %s", took.Seconds(), came.Kind))
		}
		switch {
		case len(waits) == 0:
			return silent(f, who+" never came")
		case e.Terms[len(e.Terms)-1].Who != who:
			return broken(f, "%s did not lead at last", who)
		}
		return kept(f, len(waits), "%s: %s; promised within %v", who, strings.Join(waits, ", "), within)
	}
}

func finding(promise string) oracle.Finding { return oracle.Finding{Promise: promise} }

func broken(f oracle.Finding, format string, args ...any) oracle.Finding {
	f.Verdict, f.Detail = oracle.Broken, fmt.Sprintf(format, args...)
	return f
}

func silent(f oracle.Finding, why string) oracle.Finding {
	f.Verdict, f.Detail = oracle.Silent, why
	return f
}

func kept(f oracle.Finding, count int, format string, args ...any) oracle.Finding {
	f.Verdict, f.Count, f.Detail = oracle.Kept, count, fmt.Sprintf(format, args...)
	return f
}
