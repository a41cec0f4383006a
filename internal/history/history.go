// Package history records what happened in an election, as its candidates and the
// test around them wrote it down.
//
// Each candidate writes down what it believes before it acts on it: that it was
// elected, until when it trusts its lease, each step of its work, each request
// to the store. All times are readings of one clock (package boottime on real
// hosts, the true time of a simulation), so that the records of all can be laid
// side by side. Package oracle judges a history.
//
// A history is written to a file as JSON, one object per line: first [About], then
// the events.
package history

import (
	"cmp"
	"slices"
	"time"
)

// About says what a history is of, and what was promised about it. Zero means
// that nothing was said.
type About struct {
	Title   string `json:"title,omitempty"`   // which store, which fault
	Command string `json:"command,omitempty"` // runs the same again
	Seed    uint64 `json:"seed,omitempty"`

	TTL    time.Duration `json:"ttl,omitempty"`
	Margin time.Duration `json:"margin,omitempty"`
	// Life is how long after its last sign of life a leader may keep others out.
	Life time.Duration `json:"life,omitempty"`
	// Turn is how long a record may be in the safe without its owner leading.
	Turn time.Duration `json:"turn,omitempty"`
	// Slack is how much later than promised things may happen, on a busy machine
	// and with a distant store. No promise of safety has any.
	Slack time.Duration `json:"slack,omitempty"`
	// Drift is how far the rate of a candidate's clock may be from true, as a
	// fraction: a deadline by a slow clock comes that much later.
	Drift float64 `json:"drift,omitempty"`
	// Scrape is the pause between two scrapes of a candidate.
	Scrape time.Duration `json:"scrape,omitempty"`
	// Requests is how many one candidate may send within a TTL.
	Requests int `json:"requests,omitempty"`
}

// A History is what happened, in the order of its times. See [History.Sort].
type History struct {
	About
	Events []Event
}

// Sort puts the events in the order of their times; events of the same time
// keep theirs.
func (h History) Sort() {
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
}

// Of returns the events of some kinds, or of all if none is given, that concern
// a candidate, or any candidate if who is empty.
func (h History) Of(who string, kinds ...Kind) []Event {
	found := []Event{}
	for _, e := range h.Events {
		if (who == "" || e.Who == who) && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			found = append(found, e)
		}
	}
	return found
}

// Names returns the names of all candidates that reported anything, in alphabetical order.
func (h History) Names() []string {
	names := []string{}
	for _, e := range h.Of("", Ready, Elected) {
		if !slices.Contains(names, e.Who) {
			names = append(names, e.Who)
		}
	}
	slices.Sort(names)
	return names
}

// unasked returns the history without what others asked of the candidates over HTTP: that goes on
// before, after and whatever they do.
func (h History) unasked() History {
	h.Events = slices.DeleteFunc(slices.Clone(h.Events), func(e Event) bool { return e.Kind == Said || e.Kind == Scraped })
	return h
}
