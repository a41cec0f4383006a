// Package oracle judges a history of an election against what the library
// promises. Its rules are pure functions; they read the clock of the history
// and no other.
//
// A rule answers Broken if the history shows a promise broken, Kept if it shows
// it kept, and Silent if it shows nothing of the kind: a history without fencing
// tokens says nothing about them. Silence is no proof. The caller says which
// rules must have spoken.
//
// Each rule is itself tested on a history that breaks it and, in the
// simulation, on a planted bug that must make it speak.
package oracle

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/internal/history"
)

// A Verdict is what a rule says of a history.
type Verdict string

// The verdicts.
const (
	Kept   Verdict = "kept"
	Broken Verdict = "broken"
	Silent Verdict = "silent" // the history shows nothing that the rule is about
)

// A Finding is a rule's answer, with the evidence.
type Finding struct {
	Promise string  `json:"promise"`
	Verdict Verdict `json:"verdict"`
	Count   int     `json:"count"` // of the things that were looked at
	Detail  string  `json:"detail"`
}

// A Rule looks at one promise.
type Rule func(Evidence) Finding

// Evidence is what a history shows of the leader's safe, and the terms in it; and
// of all safes.
type Evidence struct {
	history.History
	Terms []history.Stretch // in the order of their beginnings
	Whole history.History   // with what is about the other safes

	kinds map[history.Kind][]history.Event
	once  func() (byWho map[string]*ledger, commits bool)
}

// Of returns the events of some kinds about the leader's safe, as [history.History.Of]
// does. They are not to be changed.
func (e Evidence) Of(who string, kinds ...history.Kind) []history.Event {
	if who == "" && len(kinds) == 1 && e.kinds != nil {
		return e.kinds[kinds[0]]
	}
	return e.History.Of(who, kinds...)
}

// All returns every rule.
func All() []Rule {
	return []Rule{
		OneLeader, DeadlineFromSend, NoResurrection, ProvenExtension,
		TokensGrow, FenceHolds, WorkWithinTerm, SleepersNotice,
		LeaderInTime, LeaderKept, CallbacksPaired, ReleasedMeansStopped,
		NothingLeft, RequestsBounded, ForeignUnharmed,
		InOrder, TurnPassed, WaitsInLine,
		HandedOver, TransferDone, RequestDone, WaitingIsFree,
		PreferredLeads, FewChanges, SmallShare,
	}
}

// Findings are the answers of several rules.
type Findings []Finding

// Judge asks the rules about a history, or all rules if none is given.
func Judge(h history.History, rules ...Rule) Findings {
	if len(rules) == 0 {
		rules = All()
	}
	h.Events = slices.Clone(h.Events)
	h.Sort()
	e := Evidence{History: h, Terms: h.Stretches(), Whole: h}
	e.Events = slices.DeleteFunc(slices.Clone(h.Events), func(ev history.Event) bool { return ev.Safe != "" })
	e.kinds, e.once = map[history.Kind][]history.Event{}, sync.OnceValues(e.open)
	for _, ev := range e.Events {
		e.kinds[ev.Kind] = append(e.kinds[ev.Kind], ev)
	}
	findings := make(Findings, len(rules))
	for i, rule := range rules {
		findings[i] = rule(e)
	}
	return findings
}

// Broken returns the findings of broken promises.
func (fs Findings) Broken() Findings {
	found := Findings{}
	for _, f := range fs {
		if f.Verdict == Broken {
			found = append(found, f)
		}
	}
	return found
}

// Of returns the finding about a promise, as a rule names it.
func (fs Findings) Of(promise string) (Finding, bool) {
	for _, f := range fs {
		if f.Promise == promise {
			return f, true
		}
	}
	return Finding{}, false
}

// AllKept reports whether every promise was shown to be kept: none was broken,
// and no rule was silent.
func (fs Findings) AllKept() bool {
	for _, f := range fs {
		if f.Verdict != Kept {
			return false
		}
	}
	return len(fs) > 0
}

// String returns a table, one line a finding.
func (fs Findings) String() string {
	width := 0
	for _, f := range fs {
		width = max(width, len(f.Promise))
	}
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "%-6s  %-*s  %s\n", f.Verdict, width, f.Promise, f.Detail)
	}
	return b.String()
}

func (f Finding) broken(format string, args ...any) Finding {
	f.Verdict, f.Detail = Broken, fmt.Sprintf(format, args...)
	return f
}

func (f Finding) kept(count int, format string, args ...any) Finding {
	f.Verdict, f.Count, f.Detail = Kept, count, fmt.Sprintf(format, args...)
	return f
}

func (f Finding) silent(why string) Finding {
	f.Verdict, f.Detail = Silent, why
	return f
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

// name returns a term as a text: whose, and under which token.
func name(t history.Stretch) string {
	return fmt.Sprintf("%s (token %d)", t.Who, t.Token)
}
