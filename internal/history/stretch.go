package history

import (
	"slices"
	"time"
)

// A Stretch is one term as its leader saw it: it believed to lead from Begin to
// End.
type Stretch struct {
	Who        string
	Token      uint64
	Begin, End time.Duration
	Trusts     []Event         // Elected, and each Extended
	Steps      []time.Duration // of its work
	Ended      bool            // it knew of its end
	Cause      string

	killed bool
	end    time.Duration // when it ended other than by running out, or never
}

const never = time.Duration(1<<63 - 1)

// Stretches returns the terms of a sorted history in the order of their
// beginnings.
//
// A leader that was killed or put to sleep cannot write down its end. Its belief
// ends with the trust that it last wrote down, and if it was killed, then, or
// with the step of work that it still did before the signal arrived.
func (h History) Stretches() []Stretch {
	all := []Stretch{}
	last := map[string]int{} // the newest term of each, as an index
	for _, e := range h.Events {
		if e.Kind == Elected {
			last[e.Who] = len(all)
			all = append(all, Stretch{Who: e.Who, Token: e.Token, Begin: e.At, End: e.Until, Trusts: []Event{e}, end: never})
			continue
		}
		if i, ok := last[e.Who]; ok {
			all[i].note(e)
		}
	}
	for i := range all {
		all[i].End = min(all[i].End, all[i].end)
	}
	return all
}

// note takes in what happened to the leader after it was elected.
func (s *Stretch) note(e Event) {
	switch {
	case e.Kind == Killed:
		if !s.Ended {
			s.killed, s.end = true, min(s.end, e.At)
		}
	case e.Token != s.Token:
	case e.Kind == Extended:
		s.End = e.Until
		s.Trusts = append(s.Trusts, e)
	case e.Kind == Worked:
		s.Steps = append(s.Steps, e.At)
		if s.killed { // it was about to be
			s.end = e.At
		}
	case e.Kind == Ended && !s.Ended:
		s.Ended, s.Cause, s.killed = true, e.Text, false
		s.end = e.At
	}
}

// Leader returns the newest term that a candidate believed in at a time, if any.
func Leader(terms []Stretch, at time.Duration) (Stretch, bool) {
	for _, t := range slices.Backward(terms) {
		if t.Begin <= at && at < t.End {
			return t, true
		}
	}
	return Stretch{}, false
}
