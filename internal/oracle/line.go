package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
)

// InOrder is the rule that candidates get the safe in the order in which their records were put
// in or joined the line, that no candidate leads before its turn, and that no
// old client is overtaken. It needs a store that notes which record the safe holds.
func InOrder(e Evidence) Finding {
	f := Finding{Promise: "everybody in turn"}
	o := order{waiting: map[uint64]string{}, had: map[uint64]bool{}}
	n := 0
	for _, ev := range e.Of("", history.Committed, history.Holds, history.Placed, history.Found, history.Elected) {
		if why := o.take(ev); why != "" {
			return f.broken("%s", why)
		}
		if ev.Kind == history.Holds && ev.Token > 0 {
			n++
		}
	}
	if n == 0 {
		return f.silent("the store noted nothing")
	}
	return f.kept(n, "%d records had the safe, each in its turn", n)
}

// An order is what is known of the line.
type order struct {
	joined, holds uint64            // the largest tokens that were given out, and that had the safe
	waiting       map[uint64]string // old clients in line, or in the safe, by token
	had           map[uint64]bool   // the tokens that had the safe
}

// take takes an event in, and returns what is wrong with it.
func (o *order) take(ev history.Event) string {
	switch {
	case ev.Token == 0: // nothing has it, or is known to be in order
	case ev.Kind == history.Found:
		delete(o.waiting, ev.Token)
	case ev.Kind == history.Holds:
		return o.hold(ev)
	case ev.Kind == history.Elected:
		if len(o.had) > 0 && !o.had[ev.Token] {
			return fmt.Sprintf("%s led under token %d, which had not had the safe", ev.Who, ev.Token)
		}
	case ev.Kind == history.Placed, ev.Op == "create", ev.Op == "join":
		if ev.Token <= o.joined {
			return fmt.Sprintf("token %d was given out after token %d", ev.Token, o.joined)
		}
		o.joined = ev.Token
		if ev.Kind == history.Placed {
			o.waiting[ev.Token] = ev.Value
		}
	}
	return ""
}

// hold takes in that a record has the safe from now on.
func (o *order) hold(ev history.Event) string {
	if ev.Token < o.holds {
		return fmt.Sprintf("token %d had the safe after token %d", ev.Token, o.holds)
	}
	for _, token := range slices.Sorted(maps.Keys(o.waiting)) {
		if token < ev.Token {
			return fmt.Sprintf("token %d had the safe while %.40q waited, who came first (token %d)", ev.Token, o.waiting[token], token)
		}
	}
	o.holds, o.had[ev.Token] = ev.Token, true
	return ""
}

// TurnPassed is the rule that the owner of the record in the safe leads soon, or makes room:
// a record without a leader is gone after a while, whatever the network does to its
// owner.
func TurnPassed(e Evidence) Finding {
	f := Finding{Promise: "a turn is taken or passed on"}
	if e.Turn == 0 {
		return f.silent("no bound was given")
	}
	bound := e.Turn + e.Slack
	led := map[uint64]bool{}
	for _, t := range e.Terms {
		led[t.Token] = true
	}
	all, n := e.Of("", history.Holds), 0
	longest := time.Duration(0)
	for i, ev := range all {
		if ev.Who == "" {
			continue
		}
		until := e.Events[len(e.Events)-1].At
		if i+1 < len(all) {
			until = all[i+1].At
		}
		n++
		if led[ev.Token] {
			continue
		}
		if until-ev.At > bound {
			return f.broken("%s had the safe under token %d for %s and never led; promised to make room within %s", ev.Who, ev.Token, seconds(until-ev.At), seconds(bound))
		}
		longest = max(longest, until-ev.At)
	}
	if n == 0 {
		return f.silent("the store noted nothing")
	}
	return f.kept(n, "%d times; at most %s in vain", n, seconds(longest))
}

// WaitsInLine is the rule that a candidate waits in line where there is one.
func WaitsInLine(e Evidence) Finding {
	f := Finding{Promise: "who waits is in line"}
	n := 0
	for _, waits := range e.Of("", history.Waits) {
		if waits.Count == 0 {
			return f.broken("%s waited outside the line at %s", waits.Who, seconds(waits.At))
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody had to be in line")
	}
	return f.kept(n, "%d times found there", n)
}
