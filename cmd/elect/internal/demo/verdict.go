package demo

import (
	"fmt"
	"strings"
	"time"
)

// A Finding says whether a promise was kept.
type Finding struct {
	Promise string
	Kept    bool
	Detail  string // the evidence
}

// Judge checks a history against the promises. What the history does not show
// is not kept: a history without terms breaks them all.
func Judge(h History) []Finding {
	terms := h.Stretches()
	return []Finding{
		oneLeader(terms),
		tokensGrow(terms),
		workWithinTerm(terms),
		sleepersNotice(h, terms),
		successorsInTime(h),
	}
}

// Kept reports whether all promises were kept.
func Kept(findings []Finding) bool {
	for _, f := range findings {
		if !f.Kept {
			return false
		}
	}
	return len(findings) > 0
}

func (f Finding) broken(format string, args ...any) Finding {
	f.Kept, f.Detail = false, fmt.Sprintf(format, args...)
	return f
}

func (f Finding) kept(format string, args ...any) Finding {
	f.Kept, f.Detail = true, fmt.Sprintf(format, args...)
	return f
}

// oneLeader: no two stretches of belief overlap.
func oneLeader(terms []Stretch) Finding {
	f := Finding{Promise: "one leader at a time"}
	if len(terms) == 0 {
		return f.broken("nobody was elected")
	}
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			if b.Begin < a.End {
				return f.broken("%s (token %d) was elected %s before the term of %s (token %d) was over", b.Who, b.Token, seconds(a.End-b.Begin), a.Who, a.Token)
			}
		}
	}
	return f.kept("%d terms, none overlaps another%s", len(terms), closest(terms))
}

func closest(terms []Stretch) string {
	if len(terms) < 2 {
		return ""
	}
	least := terms[1].Begin - terms[0].End
	for i := range terms[1:] {
		least = min(least, terms[i+1].Begin-terms[i].End)
	}
	return fmt.Sprintf("; at least %s between them", seconds(least))
}

// tokensGrow: each term has a larger token than the one before.
func tokensGrow(terms []Stretch) Finding {
	f := Finding{Promise: "tokens grow"}
	if len(terms) == 0 {
		return f.broken("nobody was elected")
	}
	texts := []string{}
	for i, t := range terms {
		if i > 0 && t.Token <= terms[i-1].Token {
			return f.broken("%s was elected with token %d after token %d", t.Who, t.Token, terms[i-1].Token)
		}
		texts = append(texts, fmt.Sprint(t.Token))
	}
	return f.kept("%s", strings.Join(texts, " < "))
}

// workWithinTerm: each step of work lies within the term that it was done in.
func workWithinTerm(terms []Stretch) Finding {
	f := Finding{Promise: "work only while leading"}
	steps := 0
	for _, t := range terms {
		if len(t.Steps) == 0 {
			return f.broken("%s (token %d) did no work: nothing to judge by", t.Who, t.Token)
		}
		for _, at := range t.Steps {
			if at < t.Begin || at > t.End {
				return f.broken("%s (token %d) worked %s after its term", t.Who, t.Token, seconds(at-t.End))
			}
		}
		steps += len(t.Steps)
	}
	if steps == 0 {
		return f.broken("no work was done: nothing to judge by")
	}
	return f.kept("%d steps of work, each within its leader's term", steps)
}

// sleepersNotice: a leader that was put to sleep beyond its term finds out that
// the term is over, before it does any more of its work.
func sleepersNotice(h History, terms []Stretch) Finding {
	f := Finding{Promise: "a sleeper finds out"}
	details := []string{}
	for _, woken := range h.of("", Woken) {
		t, ok := termBefore(terms, woken)
		if !ok {
			return f.broken("%s was woken, but had never led", woken.Who)
		}
		if t.End > woken.At {
			return f.broken("%s was woken before its term was over: nothing to judge by", t.Who)
		}
		for _, at := range t.Steps {
			if at > woken.At {
				return f.broken("%s worked on %s after it was woken, though its term had ended", t.Who, seconds(at-woken.At))
			}
		}
		ended := endAfter(h, woken, t.Token)
		if ended == nil {
			return f.broken("%s was woken and never found out that its term was over", t.Who)
		}
		details = append(details, fmt.Sprintf("%s woke %s after its term and knew %s later, without a step of work", t.Who, seconds(woken.At-t.End), seconds(ended.At-woken.At)))
	}
	if len(details) == 0 {
		return f.broken("nobody was put to sleep and woken")
	}
	return f.kept("%s", strings.Join(details, "; "))
}

// termBefore returns the last term of a candidate that began before an event.
func termBefore(terms []Stretch, e Event) (Stretch, bool) {
	var last Stretch
	found := false
	for _, t := range terms {
		if t.Who == e.Who && t.Begin < e.At {
			last, found = t, true
		}
	}
	return last, found
}

func endAfter(h History, woken Event, token uint64) *Event {
	for _, e := range h.of(woken.Who, Ended) {
		if e.At >= woken.At && e.Token == token {
			return &e
		}
	}
	return nil
}

// successorsInTime: whenever a leader was killed or put to sleep, another one
// was elected within the record's longest life, and some slack.
func successorsInTime(h History) Finding {
	f := Finding{Promise: "a successor in time"}
	bound := h.Life + h.Slack
	details := []string{}
	for _, hit := range h.of("", Killed, Stopped) {
		next := electedAfter(h, hit)
		if next == nil {
			return f.broken("nobody was elected after %s was %s", hit.Who, fate(hit))
		}
		took := next.At - hit.At
		if took > bound {
			return f.broken("%s after %s was %s; at most %s (the store's longest life of a record, and %s for a slow machine)", seconds(took), hit.Who, fate(hit), seconds(bound), seconds(h.Slack))
		}
		details = append(details, fmt.Sprintf("%s after %s was %s", seconds(took), hit.Who, fate(hit)))
	}
	if len(details) == 0 {
		return f.broken("no leader was killed or put to sleep")
	}
	return f.kept("%s; TTL %s, the store keeps a record %s at most", strings.Join(details, ", "), seconds(h.TTL), seconds(h.Life))
}

func fate(hit Event) string {
	if hit.Kind == Killed {
		return "killed"
	}
	return "put to sleep"
}

func electedAfter(h History, hit Event) *Event {
	for _, e := range h.of("", Elected) {
		if e.At > hit.At && e.Who != hit.Who {
			return &e
		}
	}
	return nil
}

// seconds writes a duration with a precision that fits its size.
func seconds(d time.Duration) string {
	if d < 0 {
		return "-" + seconds(-d)
	}
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
