package simulation

import (
	"fmt"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/sim"
)

// A Rule needs to know more than a history says: how long the work of
// each candidate takes to stop.
type Rule func(sim.Schedule) oracle.Rule

// Rules returns all of them.
func Rules() []Rule { return []Rule{WorkStops, TheIllStepDown} }

// WorkStops is the rule that work is told of its term's end: at most a tick after
// trust has run out, and without having asked.
func WorkStops(s sim.Schedule) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := oracle.Finding{Promise: "work is told to stop", Verdict: oracle.Silent}
		tick := min(e.Margin, time.Second)
		for _, w := range works(e) {
			f = w.within(f, s, w.term.End, tick)
		}
		return f
	}
}

// TheIllStepDown is the rule that a term ends when its leader has been ill for as
// long as it may take to find out: until the next health check, and as long as
// that may take. A process that stands still finds out nothing.
func TheIllStepDown(s sim.Schedule) oracle.Rule {
	return func(e oracle.Evidence) oracle.Finding {
		f := oracle.Finding{Promise: "the ill step down", Verdict: oracle.Silent}
		refresh := (s.TTL - e.Margin) / 3
		bound := 2*refresh + min(s.TTL/50, 250*time.Millisecond)
		ill := illnesses(e)
		for _, w := range works(e) {
			for _, i := range ill[w.term.Who] {
				from := awake(e, w.term.Who, max(i.From, w.term.Begin), bound)
				if i.To >= from+bound && w.finished > from {
					f = w.within(f, s, from, bound)
				}
			}
		}
		return f
	}
}

// A work is a term's, from its beginning until it has stopped.
type work struct {
	term     history.Stretch
	finished time.Duration
	woken    time.Duration // when its process last went on after it had stood still
}

// works returns all works that have stopped.
func works(e oracle.Evidence) []work {
	all := []work{}
	elected, now := 0, map[string]history.Stretch{}
	for _, ev := range e.Events {
		switch ev.Kind {
		case history.Elected:
			now[ev.Who] = e.Terms[elected]
			elected++
		case history.Finished:
			all = append(all, work{now[ev.Who], ev.At, lastWoken(e, ev)})
		}
	}
	return all
}

// slack is how far apart things may be noted that happen at once: of all that
// goes on when a process does, its own note of that may come last.
const slack = time.Millisecond

// lastWoken returns when a process last went on before an event.
func lastWoken(e oracle.Evidence, before history.Event) (at time.Duration) {
	for _, woken := range e.Of(before.Who, history.Woken) {
		if woken.At <= before.At+slack {
			at = woken.At
		}
	}
	return at
}

// awake returns the first moment from a given one on after which a process did not stand still for
// as long as that.
func awake(e oracle.Evidence, who string, from, long time.Duration) time.Duration {
	for _, stopped := range e.Of(who, history.Stopped) {
		for _, woken := range e.Of(who, history.Woken) {
			if woken.At >= stopped.At && woken.Text == stopped.Text && stopped.At < from+long {
				from = max(from, woken.At)
				break
			}
		}
	}
	return from
}

// within looks whether work stopped within a bound from a time on, its own lag
// and the time that its process stood still not counted.
func (w work) within(f oracle.Finding, s sim.Schedule, from, bound time.Duration) oracle.Finding {
	late := w.finished - max(from, w.woken) - s.Nodes[w.term.Who[0]-'a'].Lag
	f.Count++
	switch {
	case f.Verdict == oracle.Broken:
	case late > bound+bound/50+slack:
		f.Verdict = oracle.Broken
		f.Detail = fmt.Sprintf("%s stopped its work under token %d %v late; at most %v", w.term.Who, w.term.Token, late, bound)
	default:
		f.Verdict = oracle.Kept
		f.Detail = fmt.Sprintf("%d times", f.Count)
	}
	return f
}

// illnesses returns when each candidate was ill.
func illnesses(e oracle.Evidence) map[string][]sim.Window {
	all := map[string][]sim.Window{}
	for _, ill := range e.Of("", history.Fault) {
		for _, well := range e.Of(ill.Who, history.Healed) {
			if ill.Text == string(sim.Ill) && well.Text == ill.Text && well.At >= ill.At {
				all[ill.Who] = append(all[ill.Who], sim.Window{From: ill.At, To: well.At})
				break
			}
		}
	}
	return all
}
