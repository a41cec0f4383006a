package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
)

// OneLeader is the rule that no two stretches of belief overlap. An operator
// who removes or overwrites the leader's record elects another by force: until
// the leader's next refresh, and no longer than the event says, two may lead.
func OneLeader(e Evidence) Finding {
	f := Finding{Promise: "one leader at a time"}
	if len(e.Terms) == 0 {
		return f.silent("nobody was elected")
	}
	longest := e.Terms[0] // the earlier term that ends last
	least, allowed := never, 0
	for _, b := range e.Terms[1:] {
		if b.End <= b.Begin {
			continue // it was over before it was told of, and never led
		}
		gap := b.Begin - longest.End
		switch {
		case gap >= 0:
			least = min(least, gap)
		case e.interfered(longest, b):
			allowed++
		default:
			return f.broken("%s was elected %s before the term of %s was over", name(b), seconds(-gap), name(longest))
		}
		if b.End > longest.End {
			longest = b
		}
	}
	text := ""
	if least < never {
		text = "; at least " + seconds(least) + " between them"
	}
	if allowed > 0 {
		return f.kept(len(e.Terms), "%d terms, %d of them begun by an operator's hand%s", len(e.Terms), allowed, text)
	}
	return f.kept(len(e.Terms), "%d terms, none overlaps another%s", len(e.Terms), text)
}

const never = time.Duration(1<<63 - 1)

// interfered reports whether the overlap of two terms is an operator's doing.
func (e Evidence) interfered(a, b history.Stretch) bool {
	for _, i := range e.Of("", history.Interfered) {
		if i.Token == 0 && a.Begin <= i.At && i.At <= b.Begin && a.End <= i.At+i.Within {
			return true
		}
	}
	if a.Token > b.Token {
		a = b // the record that was there first
	}
	return e.touched(a)
}

// touched reports whether a term was of a record that an operator touched, and
// ended as soon as that must be known. It may have begun afterwards, even after
// the next one: with an answer that was on its way for long.
func (e Evidence) touched(t history.Stretch) bool {
	for _, i := range e.Of("", history.Interfered) {
		if i.Token != 0 && i.Token == t.Token && t.End <= i.At+i.Within {
			return true
		}
	}
	return false
}

// Overlaps counts the pairs of terms that follow each other and overlap,
// for any reason.
func Overlaps(h history.History) int {
	terms, n, end := h.Stretches(), 0, time.Duration(-1)
	for _, t := range terms {
		if t.Begin < end {
			n++
		}
		end = max(end, t.End)
	}
	return n
}

// LeaderInTime is the rule that whenever a leader is due, there is one in time.
func LeaderInTime(e Evidence) Finding {
	f := Finding{Promise: "a leader in time"}
	waits := Waits(e.History)
	if len(waits) == 0 {
		return f.silent("no leader was due")
	}
	longest, each := waits[0], []string{}
	for _, w := range waits {
		if w.Took > w.Bound+e.Slack {
			if w.Took == never {
				return f.broken("nobody led within %s after %s", seconds(w.Bound+e.Slack), w.After)
			}
			return f.broken("%s after %s; promised within %s, and %s for a slow machine", seconds(w.Took), w.After, seconds(w.Bound), seconds(e.Slack))
		}
		if w.Took > longest.Took {
			longest = w
		}
		each = append(each, seconds(w.Took)+" after "+w.After)
	}
	if len(waits) <= 3 {
		return f.kept(len(waits), "%s; promised within %s", strings.Join(each, ", "), seconds(longest.Bound))
	}
	return f.kept(len(waits), "%d times; the longest wait was %s after %s; promised within %s", len(waits), seconds(longest.Took), longest.After, seconds(longest.Bound))
}

// A Wait is how long a leader was waited for.
type Wait struct {
	After string
	Took  time.Duration // the largest Duration if none came
	Bound time.Duration
}

// Waits returns how long it took until each leader that was due was there, in order: until
// a candidate was elected, or a leader's lease was extended. A leader that still trusts
// the lease that it was granted before does not count.
func Waits(h history.History) []Wait {
	waits := []Wait{}
	signs := h.Of("", history.Elected, history.Extended)
	for _, due := range h.Of("", history.Due) {
		w := Wait{After: due.Text, Took: never, Bound: due.Within}
		from, _ := slices.BinarySearchFunc(signs, due.At, func(e history.Event, at time.Duration) int { return cmp.Compare(e.At, at) })
		for _, sign := range signs[from:] {
			if sign.Who != due.Who {
				w.Took = sign.At - due.At
				break
			}
		}
		waits = append(waits, w)
	}
	return waits
}

// LeaderKept is the rule that a fault that a leader must survive does not end
// its term.
func LeaderKept(e Evidence) Finding {
	f := Finding{Promise: "a leader kept"}
	n := 0
	for _, keep := range e.Of("", history.Keep) {
		n++
		i := find(e.Terms, keep.Who, keep.Token)
		if i < 0 {
			return f.broken("%s was to lead on under token %d, but never did", keep.Who, keep.Token)
		}
		if t := e.Terms[i]; t.End < keep.At+keep.Within {
			return f.broken("%s was to lead on for %s, but its term ended after %s: %s", name(t), seconds(keep.Within), seconds(t.End-keep.At), why(t))
		}
	}
	if n == 0 {
		return f.silent("no leader had to last")
	}
	return f.kept(n, "%d times", n)
}

func why(t history.Stretch) string {
	if t.Ended {
		return t.Cause
	}
	return "it was not extended"
}

// find returns the index of a term, or -1.
func find(terms []history.Stretch, who string, token uint64) int {
	for i, t := range terms {
		if t.Who == who && t.Token == token {
			return i
		}
	}
	return -1
}
