// Package coexist judges how the processes of a mixed fleet got on: some with an
// old lock, some with this library, all on one key.
//
// It looks at what each process believed (a [Term]), at what the store showed
// while they did (a [Sighting], a [Departure]), and at what was deleted by
// programs that ask no questions (an [Erasure]). All times are readings of one
// clock. Its functions are pure.
//
// # What is demanded
//
// Of a term of this library every moment counts, from before its leader was told
// to the moment at which its context was dead. While it lasts,
//
//   - no other term of this library does ([Story.Judge]: two leaders);
//   - the store shows its record (it led on after its record was gone);
//   - the store shows nobody else's record (a leader beside a holder);
//   - no old lock is in its right: its belief, as far as the last renewal that
//     was granted reaches, counted from that renewal's send.
//
// And the record of an old lock leaves the store only because its holder has
// released it, its time is over, or another old program has deleted it (a record
// that was harmed).
//
// # What is not
//
// Old locks are known to believe beyond what the store granted them: a process
// that slept, that was cut off, whose library hides the loss of its session. That
// is why they are replaced. A belief beyond the right is counted as a [Flaw] of
// the old lock and shown, and fails nothing: whoever leads beside it, old or new,
// was let in by the store. The right is never stretched in our favour: what the
// store shows counts for the old lock whatever it says itself, also when its
// process is dead.
//
// A program that releases by a bare DEL may delete the record of a leader of
// this library. Nothing in the store can keep it from doing so, and the next one
// gets in at once. The overlap that follows is that program's doing, if the DEL
// really took that leader's record and came before the overlap; what is demanded
// of the leader is that its term is over within [Story.Notice] of the DEL. Such
// overlaps are counted apart too ([Verdict.Excused]).
package coexist

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Term is one stretch in which a process believed that it holds the lock or
// leads.
type Term struct {
	Who string
	Old bool
	// Owner is how its record is told from all others in the store, as in
	// Sighting.
	Owner string
	Token uint64 // of what it writes to; zero if it has none

	Begin time.Duration
	// End is when it knew of the end, or could not believe any more: it was
	// killed, or its context had run out.
	End time.Duration
	// Right is until when the store had granted it to the holder, at least, by
	// what the holder knows. Zero if its library does not tell. Of old locks
	// only.
	Right time.Duration
	// Released is the first moment at which it may have asked the store to
	// release the record, or zero if it never has. Of old locks only.
	Released time.Duration
}

// A Sighting is a stretch in which the store showed one record whenever it was
// looked at. Each look is a linearizable read, which shows what was there at some
// moment between its send and its answer.
type Sighting struct {
	Owner string
	Old   bool
	Value string // as an old observer reads it
	Token uint64 // the store's number of the record, if it has one

	FirstSent, FirstAnswered time.Duration // the first look that showed it
	LastSent, LastAnswered   time.Duration // the last one
}

// A Departure is when a record was not there any more.
type Departure struct {
	Owner string
	By    time.Duration // when the first look was answered that did not show it
	// Alive is set if what kept the record, its session, lease or expiry, had
	// not run out then: somebody has removed it.
	Alive bool
}

// An Erasure is a delete by somebody who did not ask whose record it is: a bare
// DEL, or an operator's hand.
type Erasure struct {
	Who            string
	Sent, Answered time.Duration
	// Owner is whose record it has taken, empty if none. Unknown is set if the
	// answer was lost.
	Owner   string
	Unknown bool
}

// A Story is all that is known of a fleet.
type Story struct {
	Terms      []Term
	Sightings  []Sighting
	Departures []Departure
	Erasures   []Erasure
	// Notice is within what time after its record was erased a term of this
	// library is over.
	Notice time.Duration
	// Grain is the unit in which the store keeps time: a grant may end so much
	// early.
	Grain time.Duration
}

// A Verdict is what the story shows.
type Verdict struct {
	Old, New int      // terms of each kind
	Broken   []string // promises of this library
	Flaws    []Flaw   // of the old locks
	Excused  []string // overlaps that follow an erasure
	// Erased is how many terms of this library were ended by an erasure, and
	// Slowest how long after it the last of them was over.
	Erased  int
	Slowest time.Duration
}

// A Flaw is an old lock's belief beyond its right, while somebody else held.
type Flaw struct {
	Who, Other string
	Lasted     time.Duration
}

// Judge looks at all pairs.
func (s Story) Judge() Verdict {
	v := Verdict{}
	s.Terms = slices.Clone(s.Terms)
	slices.SortStableFunc(s.Terms, func(a, b Term) int { return cmp.Compare(a.Begin, b.Begin) })
	for i, t := range s.Terms {
		if t.Old {
			v.Old++
		} else {
			v.New++
			s.beside(t, &v)
			s.erased(t, &v)
			s.backed(t, &v)
		}
		for _, other := range s.Terms[:i] {
			s.pair(other, t, &v)
		}
	}
	for _, d := range s.Departures {
		s.harmed(d, &v)
	}
	return v
}

// pair judges two beliefs, a begun before b.
func (s Story) pair(a, b Term, v *Verdict) {
	from, to := max(a.Begin, b.Begin), min(a.End, b.End)
	if to <= from {
		return
	}
	switch {
	case !a.Old && !b.Old:
		s.accuse([]Term{a, b}, from, v, "%s led beside %s for %v from %v", name(b), name(a), to-from, from)
	case a.Old && b.Old:
		v.Flaws = append(v.Flaws, Flaw{a.Who, b.Who, to - from})
	default:
		old, own := a, b
		if b.Old {
			old, own = b, a
		}
		if right := min(to, s.right(old)); right > from {
			s.accuse([]Term{own}, from, v, "%s led for %v from %v while %s was in its right", name(own), right-from, from, name(old))
			return
		}
		v.Flaws = append(v.Flaws, Flaw{old.Who, own.Who, to - from})
	}
}

// right returns until when an old lock was surely in its right: as granted, unless
// its record was deleted before.
func (s Story) right(t Term) time.Duration {
	right := t.Right - s.Grain
	for _, e := range s.Erasures {
		if e.Answered > t.Begin && (e.Owner == t.Owner || e.Unknown && !s.seenAfter(t.Owner, e.Answered)) {
			right = min(right, e.Sent)
		}
	}
	return right
}

// beside looks for others in the store while a term of this library lasts.
func (s Story) beside(t Term, v *Verdict) {
	for _, seen := range s.Sightings {
		if seen.Owner == t.Owner {
			continue
		}
		at, found := seen.within(t.Begin, t.End)
		if !found {
			continue
		}
		whose := "a term of this library"
		if seen.Old {
			whose = "an old lock"
		}
		s.accuse([]Term{t}, at, v, "%s led at %v while the store showed %q of %s", name(t), at, seen.Owner, whose)
	}
}

// within returns a moment between from and to at which, or before which, the
// record is known to have been there, if there is one.
func (g Sighting) within(from, to time.Duration) (time.Duration, bool) {
	switch {
	case max(from, g.FirstAnswered) < min(to, g.LastSent): // there between its looks
		return max(from, g.FirstAnswered), true
	case from <= g.FirstSent && g.FirstAnswered <= to: // a look that lies in it
		return g.FirstAnswered, true
	case from <= g.LastSent && g.LastAnswered <= to:
		return g.LastAnswered, true
	}
	return 0, false
}

// accuse notes an overlap that began at a time, unless one of the terms had been
// erased before.
func (s Story) accuse(terms []Term, from time.Duration, v *Verdict, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, t := range terms {
		// One without an answer must have struck a term that there was.
		if e, ok := s.erasure(t); ok && e.Sent <= from && (!e.Unknown || t.Begin < from) {
			v.Excused = append(v.Excused, text+", after "+e.Who+" had deleted its record")
			return
		}
	}
	v.Broken = append(v.Broken, text)
}

// erasure returns the erasure that took a term's record, if there was one, and
// the term was over in time. It may have begun later, when the answer to its claim came.
func (s Story) erasure(t Term) (Erasure, bool) {
	for _, e := range s.Erasures {
		took := e.Owner == t.Owner || e.Unknown && t.Begin <= e.Answered && !s.seenAfter(t.Owner, e.Answered)
		if took && e.Sent <= t.End && t.End <= e.Answered+s.Notice {
			return e, true
		}
	}
	return Erasure{}, false
}

func (s Story) seenAfter(owner string, at time.Duration) bool {
	return slices.ContainsFunc(s.Sightings, func(g Sighting) bool { return g.Owner == owner && g.LastSent > at })
}

// erased demands that a term whose record is known to have been deleted is over
// in time.
func (s Story) erased(t Term, v *Verdict) {
	for _, e := range s.Erasures {
		if e.Owner == "" || e.Owner != t.Owner || t.End <= e.Sent {
			continue
		}
		took := t.End - e.Answered
		v.Erased++
		v.Slowest = max(v.Slowest, took)
		if took > s.Notice {
			v.Broken = append(v.Broken, fmt.Sprintf("%s led on for %v after %s had deleted its record; at most %v", name(t), took, e.Who, s.Notice))
		}
	}
}

// backed demands that the record of a term of this library is in the store as
// long as the term lasts, unless somebody has deleted it.
func (s Story) backed(t Term, v *Verdict) {
	for _, d := range s.Departures {
		if d.Owner != t.Owner || d.By <= t.Begin || d.By >= t.End {
			continue
		}
		if _, ok := s.erasure(t); !ok {
			v.Broken = append(v.Broken, fmt.Sprintf("%s led on for %v after %v, when its record was gone", name(t), t.End-d.By, d.By))
		}
	}
}

// harmed looks whether the record of an old lock was removed by somebody who had
// no right to.
func (s Story) harmed(d Departure, v *Verdict) {
	if !d.Alive {
		return
	}
	for _, e := range s.Erasures {
		if e.Owner == d.Owner || e.Unknown && e.Sent <= d.By {
			return
		}
	}
	for _, t := range s.Terms {
		if t.Old && t.Owner == d.Owner && (t.Released == 0 || t.Released > d.By) {
			v.Broken = append(v.Broken, fmt.Sprintf("the record of %s was gone at %v, before its time and before it was released", name(t), d.By))
			return
		}
	}
}

func name(t Term) string {
	if t.Token > 0 {
		return fmt.Sprintf("%s (%q, token %d)", t.Who, t.Owner, t.Token)
	}
	return fmt.Sprintf("%s (%q)", t.Who, t.Owner)
}
