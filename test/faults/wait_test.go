//go:build linux

package faults

import (
	"slices"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// patience is how long something is waited for beyond its bound, before a row
// is given up. It is no promise: what is promised is noted by due.
const patience = 20 * time.Second

// await waits for an event that has not been awaited before, and returns it. All
// events that came before it count as awaited then.
func (s *stage) await(what string, cue func(history.Event) bool) history.Event {
	s.t.Helper()
	e, seen, ok := s.told.Await(s.seen, s.takeover()+patience, cue)
	if !ok {
		s.t.Fatalf("it did not happen: %s", what)
	}
	s.seen = seen
	return e
}

// awaitOf waits for an event of a kind of a candidate, that has not been awaited
// before.
func (s *stage) awaitOf(who string, kind history.Kind) history.Event {
	s.t.Helper()
	return s.await(who+" "+string(kind), func(e history.Event) bool { return e.Who == who && e.Kind == kind })
}

// leader waits until somebody other than some leads, and returns the term.
func (s *stage) leader(not ...string) history.Stretch {
	s.t.Helper()
	deadline := time.Now().Add(s.takeover() + patience)
	for {
		term, ok := s.leads()
		if ok && len(s.others(not...)) > 0 && !slices.Contains(not, term.Who) {
			return term
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("nobody but %v came to lead", not)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// leads returns the term of whoever leads at this moment, if anybody does.
func (s *stage) leads() (history.Stretch, bool) {
	now := boottime.Now()
	return history.Leader(s.events().Stretches(), now)
}

// alive waits until all candidates stand, and one of them leads, and has been at
// it for at least a refresh.
func (s *stage) alive() history.Stretch {
	s.t.Helper()
	for _, who := range s.names {
		for _, id := range s.cast[who].part.Who {
			for len(s.events().Of(id, history.Ready)) == 0 {
				s.awaitOf(id, history.Ready)
			}
		}
	}
	for {
		term := s.leader()
		e := s.await("a leader's refresh", func(e history.Event) bool {
			return e.Kind == history.Extended || e.Kind == history.Ended
		})
		if e.Kind == history.Extended && e.Who == term.Who {
			now, _ := s.leads()
			if now.Who == term.Who && now.Token == term.Token {
				return now
			}
		}
	}
}

// settle waits until all that was due has been seen, or is late.
func (s *stage) settle() {
	s.t.Helper()
	for _, due := range s.events().Of("", history.Due) {
		for !s.met(due) && boottime.Now() <= due.At+due.Within+s.slack(s.takeover()) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// met reports whether somebody has been seen to lead since a leader was due.
func (s *stage) met(due history.Event) bool {
	return slices.ContainsFunc(s.events().Events, func(e history.Event) bool {
		return e.At >= due.At && e.Who != due.Who && (e.Kind == history.Elected || e.Kind == history.Extended)
	})
}

// pass lets time pass.
func (s *stage) pass(d time.Duration) { time.Sleep(d) }
