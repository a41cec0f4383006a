package oracle

import (
	"fmt"
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
)

// WorkWithinTerm is the rule that each step of work lies within the term that
// it was done in.
func WorkWithinTerm(e Evidence) Finding {
	f := Finding{Promise: "work only while leading"}
	steps := 0
	for _, t := range e.Terms {
		for _, at := range t.Steps {
			if at < t.Begin || at > t.End {
				return f.broken("%s worked %s after its term", name(t), seconds(at-t.End))
			}
		}
		steps += len(t.Steps)
	}
	if steps == 0 {
		return f.silent("no work was done")
	}
	return f.kept(steps, "%d steps of work, each within its leader's term", steps)
}

// SleepersNotice is the rule that a leader that was put to sleep beyond its
// term finds out that the term is over, before it does any more of its work.
func SleepersNotice(e Evidence) Finding {
	f := Finding{Promise: "a sleeper finds out"}
	details := []string{}
	for _, woken := range e.Of("", history.Woken) {
		t, ok := e.before(woken)
		if !ok || t.End > woken.At || t.Ended && e.ended(t).At < woken.At {
			continue // it was no leader, or slept within its term
		}
		for _, at := range t.Steps {
			if at > woken.At {
				return f.broken("%s worked on %s after it was woken, though its term had ended", t.Who, seconds(at-woken.At))
			}
		}
		if !t.Ended && e.killedAfter(woken) {
			continue // it had no time to find out
		}
		if !t.Ended {
			return f.broken("%s was woken and never found out that its term was over", t.Who)
		}
		details = append(details, fmt.Sprintf("%s woke %s after its term and knew %s later, without a step of work", t.Who, seconds(woken.At-t.End), seconds(e.ended(t).At-woken.At)))
	}
	if len(details) == 0 {
		return f.silent("no leader was woken after its term")
	}
	return f.kept(len(details), "%s", strings.Join(details, "; "))
}

// before returns the last term of a candidate that began before an event, since
// it last came to stand: what came before a kill is another's.
func (e Evidence) before(ev history.Event) (last history.Stretch, found bool) {
	came := time.Duration(0)
	for _, ready := range e.Of(ev.Who, history.Ready) {
		if ready.At <= ev.At {
			came = ready.At
		}
	}
	for _, t := range e.Terms {
		if t.Who == ev.Who && came <= t.Begin && t.Begin < ev.At {
			last, found = t, true
		}
	}
	return last, found
}

// killedAfter reports whether the candidate of an event was killed after it.
func (e Evidence) killedAfter(ev history.Event) bool {
	for _, killed := range e.Of(ev.Who, history.Killed) {
		if killed.At >= ev.At {
			return true
		}
	}
	return false
}

// ended returns the event by which a term's leader said that it had ended.
func (e Evidence) ended(t history.Stretch) history.Event {
	for _, ev := range e.Of(t.Who, history.Ended) {
		if ev.Token == t.Token && ev.At >= t.Begin {
			return ev
		}
	}
	return history.Event{}
}

// CallbacksPaired is the rule that a leader's work is started once for each
// term that it starts in, never twice at once, and its end is reported exactly
// once. Only a process that was killed is excused.
func CallbacksPaired(e Evidence) Finding {
	f := Finding{Promise: "callbacks in pairs"}
	working := map[string]history.Event{}
	dead := map[string]bool{}
	n := 0
	for _, ev := range e.Events {
		open, busy := working[ev.Who]
		switch ev.Kind {
		case history.Ready:
			if dead[ev.Who] { // it may have been started before the signal arrived
				delete(working, ev.Who)
			}
			delete(dead, ev.Who)
		case history.Killed:
			dead[ev.Who] = true
			delete(working, ev.Who)
		case history.Started:
			if busy {
				return f.broken("%s was started under token %d while it worked under token %d", ev.Who, ev.Token, open.Token)
			}
			if find(e.Terms, ev.Who, ev.Token) < 0 {
				return f.broken("%s was started under token %d, under which it was never elected", ev.Who, ev.Token)
			}
			working[ev.Who] = ev
			n++
		case history.Finished:
			if dead[ev.Who] {
				continue // it did so before the signal arrived
			}
			if !busy || open.Token != ev.Token {
				return f.broken("%s was stopped under token %d, under which it was not at work", ev.Who, ev.Token)
			}
			delete(working, ev.Who)
		case history.Left:
			if busy {
				return f.broken("%s returned, but its work under token %d was never stopped", ev.Who, open.Token)
			}
		}
	}
	if n == 0 {
		return f.silent("no work was started")
	}
	return f.kept(n, "%d times started, and each time stopped once", n)
}

// ReleasedMeansStopped is the rule that a leader gives the safe up, or hands it
// over, only after its work has stopped.
func ReleasedMeansStopped(e Evidence) Finding {
	f := Finding{Promise: "released means stopped"}
	working := map[string]uint64{}
	n := 0
	for _, ev := range e.Events {
		switch ev.Kind {
		case history.Started:
			working[ev.Who] = ev.Token
		case history.Finished, history.Ready:
			delete(working, ev.Who)
		case history.Sent:
			if ev.Op != "delete" && ev.Next == "" {
				continue
			}
			if token, busy := working[ev.Who]; busy && token == ev.Token {
				return f.broken("%s gave up the safe under token %d while its work went on", ev.Who, ev.Token)
			}
			n++
		}
	}
	if n == 0 {
		return f.silent("no safe was given up")
	}
	return f.kept(n, "%d times given up, never while work went on", n)
}
