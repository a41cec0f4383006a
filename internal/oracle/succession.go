package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
)

// HandedOver is the rule that a leader that gives up while there is an heir hands
// the safe over: it is the heir's next, at once, and no candidate finds it vacant in
// between. It needs a store that notes which record the safe holds.
//
// If a leader's term ends at the moment when it calls its heir, to yield to it, the call has
// taken the heir's place: there is no heir then, until a candidate competes for it again.
func HandedOver(e Evidence) Finding {
	f := Finding{Promise: "handed over without a gap"}
	holds, n := e.Of("", history.Holds), 0
	for _, passes := range e.Of("", history.Passes) {
		i := slices.IndexFunc(holds, func(ev history.Event) bool { return ev.Token == passes.Token })
		switch {
		case i < 0:
			return f.broken("%s was to hand over under token %d, which never had the safe", passes.Who, passes.Token)
		case i+1 < len(holds) && e.called(passes, holds[i+1].At):
			continue
		case i+1 == len(holds) || holds[i+1].At > passes.At+passes.Within+e.Slack:
			return f.broken("%s (token %d) did not hand over to %s within %s", passes.Who, passes.Token, passes.Value, seconds(passes.Within+e.Slack))
		case holds[i+1].Token == 0:
			return f.broken("the safe was vacant after %s (token %d) gave it up, though %s was next", passes.Who, passes.Token, passes.Value)
		case holds[i+1].Who != passes.Value:
			return f.broken("%s (token %d) was followed by %s, though %s was next", passes.Who, passes.Token, holds[i+1].Who, passes.Value)
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody gave up while there was an heir")
	}
	return f.kept(n, "%d times", n)
}

// called reports whether a leader's call for an heir arrived between the end of its
// term and the moment when it gave up the safe.
func (e Evidence) called(passes history.Event, gaveUp time.Duration) bool {
	return slices.ContainsFunc(e.Whole.Of(passes.Who, history.Holds), func(ev history.Event) bool {
		return ev.Safe == history.Heir && passes.At <= ev.At && ev.At < gaveUp
	})
}

// TransferDone is the rule that a leader that was told to hand over leads on if that
// was refused for want of such an heir, and has given up its term if it was not.
func TransferDone(e Evidence) Finding {
	f := Finding{Promise: "a transfer is done or refused"}
	n := 0
	for _, ev := range e.Of("", history.Transferred) {
		switch {
		case ev.Result == history.NoHeir && ev.Text != "":
			return f.broken("%s (token %d) could not hand over to %s, and leads no longer: %s", ev.Who, ev.Token, ev.Value, ev.Text)
		case ev.Result == history.OK && ev.Text == "":
			return f.broken("%s (token %d) is said to hand over to %s, and has not given up its term", ev.Who, ev.Token, ev.Value)
		case ev.Result == history.OK, ev.Result == history.NoHeir:
			n++
		}
	}
	if n == 0 {
		return f.silent("nobody was told to hand over")
	}
	return f.kept(n, "%d times", n)
}

// RequestDone is the rule that if a request to a leader from outside is reported as done, it
// was done: the same leader did not have the safe all the time, or its
// record has lapsed. If another was to lead, that one had the safe.
func RequestDone(e Evidence) Finding {
	f := Finding{Promise: "what is asked for is done"}
	holds, n := e.Of("", history.Holds), 0
	for _, ev := range e.Of("", history.Replied) {
		if ev.Result != history.OK {
			continue
		}
		had := during(holds, ev.At-ev.Within, ev.At+e.Slack)
		if ev.Op == "transfer" && !slices.ContainsFunc(had, func(h history.Event) bool { return h.Who == ev.Value }) {
			return f.broken("%s was told that %s leads, which did not have the safe since it asked for that", ev.Who, ev.Value)
		}
		if ev.Op == "resign" && len(had) == 1 && had[0].Token != 0 && !e.lapsed(had[0].Token, ev.At-ev.Within, ev.At) {
			return f.broken("%s was told that the leader has resigned, but %s has had the safe under token %d since before", ev.Who, had[0].Who, had[0].Token)
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody was told that it is done")
	}
	return f.kept(n, "%d times", n)
}

// lapsed reports whether a record was not written for its TTL as granted, all but what
// clocks may differ by, before it was again or the time to is reached, which is after
// from. Where observers judge, the record is dead for a candidate that has watched it, though
// the store holds it.
func (e Evidence) lapsed(token uint64, from, to time.Duration) bool {
	last, ttl := never, e.TTL
	for _, ev := range e.Of("", history.Answered) {
		if ev.Token == token && ev.TTL > 0 {
			ttl = min(ttl, ev.TTL)
		}
	}
	for _, ev := range e.Of("", history.Committed) {
		if ev.Token != token || ev.At > to {
			continue
		}
		if ev.At >= from && ev.At-last >= ttl-ttl/50 {
			return true
		}
		last = ev.At
	}
	return last < never && to-last >= ttl-ttl/50
}

// during returns the owners of the safe from one time to another, in order.
func during(holds []history.Event, from, to time.Duration) []history.Event {
	had := []history.Event{{Kind: history.Holds}} // it is vacant at first
	for _, ev := range holds {
		switch {
		case ev.At > to:
			return had
		case ev.At < from:
			had[0] = ev
		default:
			had = append(had, ev)
		}
	}
	return had
}

// WaitingIsFree is the rule that a candidate that is not next does not watch the leader, and
// sends nothing while nothing happens.
func WaitingIsFree(e Evidence) Finding {
	f := Finding{Promise: "waiting is free"}
	n, sent := 0, e.Whole.Of("", history.Sent)
	for _, idle := range e.Of("", history.Idle) {
		if idle.Count > 0 {
			return f.broken("%s waits, and is not next, and has %d watches on the leader's safe", idle.Who, idle.Count)
		}
		for _, ev := range sent {
			if ev.Who == idle.Who && idle.At < ev.At && ev.At < idle.At+idle.Within {
				return f.broken("%s waits, and is not next, and sent a %s %s later", idle.Who, ev.Op, seconds(ev.At-idle.At))
			}
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody had nothing to do")
	}
	return f.kept(n, "%d times", n)
}

// PreferredLeads is the rule that the candidate that is preferred to the others leads after a
// while.
func PreferredLeads(e Evidence) Finding {
	f := Finding{Promise: "the preferred one leads"}
	n := 0
	for _, ev := range e.Of("", history.Preferred) {
		t, ok := history.Leader(e.Terms, ev.At)
		switch {
		case !ok:
			return f.broken("nobody leads when one of %s should", ev.Value)
		case !slices.Contains(strings.Fields(ev.Value), t.Who):
			return f.broken("%s leads when one of %s should", name(t), ev.Value)
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody was preferred for long enough")
	}
	return f.kept(n, "%d times", n)
}

// FewChanges is the rule that without faults the leader changes no more often than
// candidates come.
func FewChanges(e Evidence) Finding {
	f := Finding{Promise: "few changes of leader"}
	n := 0
	for _, ev := range e.Of("", history.Settled) {
		terms := slices.DeleteFunc(slices.Clone(e.Terms), func(t history.Stretch) bool { return t.Begin > ev.At })
		if len(terms) > ev.Count {
			return f.broken("%d terms where nothing went wrong and nobody was told to go; at most %d", len(terms), ev.Count)
		}
		n++
	}
	if n == 0 {
		return f.silent("something went wrong, or somebody had enough")
	}
	return f.kept(n, "%d times", n)
}

// SmallShare is the rule that a candidate that comes back again and again leads for
// a small part of the time, however much it is preferred.
func SmallShare(e Evidence) Finding {
	f := Finding{Promise: "a flapping candidate is held back"}
	n := 0
	for _, ev := range e.Of("", history.Share) {
		led := time.Duration(0)
		for _, t := range e.Terms {
			if t.Who == ev.Who {
				led += min(t.End, ev.At) - t.Begin
			}
		}
		if led > ev.Within+e.Slack {
			return f.broken("%s led for %s of %s; at most %s", ev.Who, seconds(led), seconds(ev.At), seconds(ev.Within+e.Slack))
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody came back again and again")
	}
	return f.kept(n, "%d times", n)
}
