// Package demo plays an election of three processes, of which one is killed and
// one put to sleep, and judges from their own records whether the promises were
// kept.
//
// Each candidate writes down what it believes before it acts on it: that it was
// elected, until when it trusts its lease, each step of its work. The recorded
// times are readings of one clock (package boottime), so the histories of all
// can be laid side by side. [Judge] is a pure function of them.
package demo

import (
	"cmp"
	"slices"
	"time"
)

// A Kind is what an Event reports.
type Kind string

// What candidates report of themselves, and what is done to them.
const (
	Ready    Kind = "ready"    // campaigns
	Elected  Kind = "elected"  // leads, under Token, trusted until Until
	Extended Kind = "extended" // trusts its lease until Until
	Worked   Kind = "worked"   // asked whether it leads, at At or later, and was told yes
	Ended    Kind = "ended"    // knows that its term is over, and why

	Killed  Kind = "killed"  // about to be sent SIGKILL
	Stopped Kind = "stopped" // about to be sent SIGSTOP
	Woken   Kind = "woken"   // about to be sent SIGCONT
)

// An Event is one line of a candidate's record.
type Event struct {
	At    time.Duration `json:"at"` // boottime
	Who   string        `json:"who"`
	Kind  Kind          `json:"kind"`
	Token uint64        `json:"token,omitempty"`
	Until time.Duration `json:"until,omitempty"` // boottime
	Cause string        `json:"cause,omitempty"`
}

// A History is what happened, and what was promised about it.
type History struct {
	Events []Event
	TTL    time.Duration
	// Life is how long after its last sign of life a leader may keep others out.
	Life time.Duration
	// Slack is added to it for a busy machine and a distant store.
	Slack time.Duration
}

// A Stretch is one term as its leader saw it: it believed to lead from Begin to
// End.
type Stretch struct {
	Who        string
	Token      uint64
	Begin, End time.Duration
	Steps      []time.Duration // of its work
	Ended      bool            // it knew of its end
	Cause      string
}

// Stretches returns the terms in the order of their beginnings.
//
// A leader that was killed or put to sleep cannot write down its end. Its belief
// ends with the trust that it last wrote down, and if it was killed, then, or
// with the step of work that it still did before the signal arrived.
func (h History) Stretches() []Stretch {
	all := []Stretch{}
	for _, elected := range h.of("", Elected) {
		all = append(all, h.stretch(elected))
	}
	return all
}

func (h History) stretch(elected Event) Stretch {
	s := Stretch{Who: elected.Who, Token: elected.Token, Begin: elected.At, End: elected.Until}
	end := time.Duration(-1)
	for _, e := range h.of(s.Who) {
		switch {
		case e.At < s.Begin:
		case e.Kind == Killed:
			end = e.At
		case e.Token != s.Token:
		case e.Kind == Extended:
			s.End = e.Until
		case e.Kind == Worked:
			s.Steps = append(s.Steps, e.At)
			if end >= 0 && !s.Ended { // it was about to be killed
				end = e.At
			}
		case e.Kind == Ended:
			end, s.Ended, s.Cause = e.At, true, e.Cause
		}
	}
	if end >= 0 {
		s.End = min(s.End, end)
	}
	return s
}

// of returns the events of a candidate, or of all, of some kinds, or of all, in
// the order of their times.
func (h History) of(who string, kinds ...Kind) []Event {
	found := []Event{}
	for _, e := range h.Events {
		if (who == "" || e.Who == who) && (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return found
}

// Who returns the candidates' names in the order of the alphabet.
func (h History) Who() []string {
	names := []string{}
	for _, e := range h.Events {
		if !slices.Contains(names, e.Who) {
			names = append(names, e.Who)
		}
	}
	slices.Sort(names)
	return names
}
