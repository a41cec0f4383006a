package chronicle

import (
	"slices"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

const (
	// mostSpells, mostHeirs and mostMarks are how many an election keeps, the newest.
	mostSpells = 256
	mostHeirs  = 256
	mostMarks  = 64

	// memory is how long an heir that has gone is still thought of. The watches of the two
	// safes are not in step, and one of them may be polled.
	memory = 3 * time.Second
)

// An Election is what is known of one election.
type Election struct {
	Name string

	// Spells are contiguous, oldest first. The last one goes on. There is none before the
	// first look at the store.
	Spells []Spell
	// Heirs are the candidates that were seen as heir, oldest first. The last one is heir if
	// it has no To. Only Owner, From and To are set.
	Heirs []Spell
	// Hold is until when about a hold keeps a vacant election closed, by the wall clock of the
	// host that began the work; zero if none is known.
	Hold time.Time
	// Trouble says why the store cannot be watched; empty if it can be.
	Trouble string

	// What the observer itself does not see, and was told.

	Candidates []Candidate // those that are known beside the leader and the heir
	Marks      []Mark

	seq      uint64 // of its last change
	listed   bool   // its name was found
	troubles map[string]string
}

// A Candidate is one that somebody knows of who sees more than the store shows.
type Candidate struct {
	ID    string
	State string // in a word or two
}

// A Mark is what was done to a candidate, for example by a test.
type Mark struct {
	At   time.Duration
	Who  string
	What string // in a few words, after the candidate's name: "is killed"
	Sign string // for What, in a letter
}

// Now returns the spell that goes on, in the state [Unknown] before the first look.
func (e *Election) Now() Spell {
	if len(e.Spells) == 0 {
		return Spell{State: Unknown}
	}
	return e.Spells[len(e.Spells)-1]
}

// Heir returns the candidate that is next, if one is known. For a moment after a change of
// leader the heir's record is still the leader's own, and that is none.
func (e *Election) Heir() (Spell, bool) {
	if n := len(e.Heirs); n > 0 && e.Heirs[n-1].To == 0 && !e.Heirs[n-1].Owner.sameCampaign(e.Now().Owner) {
		return e.Heirs[n-1], true
	}
	return Spell{}, false
}

// Terms returns how many terms have begun since a time.
func (e *Election) Terms(since time.Duration) int {
	n := 0
	for _, s := range e.Spells {
		if s.State == Led && !s.Found && s.From >= since {
			n++
		}
	}
	return n
}

// How says in words how a spell ended, if it was a term: Spells[i].
func (e *Election) How(i int) string {
	switch e.Spells[i].End {
	case HandedOver:
		return "handed over to " + e.Spells[i+1].Owner.ID + ", its heir, without a gap"
	case Lost:
		return "lost: it did not hand over, though it had an heir"
	case Over:
		return "given up or lost: it had no heir"
	case Unseen:
		return "ended while the store could not be watched"
	}
	return ""
}

// GoesOn reports whether Spells[i] is the term before it, which went on while the store could
// not be watched.
func (e *Election) GoesOn(i int) bool {
	return i > 1 && e.Spells[i-1].State == Unknown && goesOn(e.Spells[i-2], e.Spells[i])
}

// see takes in what the leader's safe holds, and reports whether that is news.
func (e *Election) see(rec kv.Record, vacant bool, at time.Duration) bool {
	next := Spell{State: stateOf(rec, vacant), From: at, Owner: ownerOf(rec), Found: len(e.Spells) == 0}
	if n := len(e.Spells); n > 0 {
		last := &e.Spells[n-1]
		if last.State == next.State && last.Owner.sameTerm(next.Owner) {
			news := !last.Owner.equal(next.Owner)
			last.Owner = next.Owner
			return news
		}
		next.Found = last.State == Unknown
		last.To, last.End = at, e.endOf(*last, next)
		if last.State == Unknown && n > 1 && goesOn(e.Spells[n-2], next) {
			e.Spells[n-2].End = ""
		}
	}
	e.Spells, e.Hold = latest(append(e.Spells, next), mostSpells), time.Time{}
	return true
}

// hide notes that the leader's safe cannot be seen from now on.
func (e *Election) hide(at time.Duration) {
	n := len(e.Spells)
	if n == 0 || e.Spells[n-1].State == Unknown {
		return
	}
	next := Spell{State: Unknown, From: at}
	last := &e.Spells[n-1]
	last.To, last.End = at, e.endOf(*last, next)
	e.Spells = latest(append(e.Spells, next), mostSpells)
}

// goesOn reports whether a spell after which the store could not be seen went on meanwhile.
func goesOn(before, after Spell) bool {
	return before.State == after.State && before.Owner.sameTerm(after.Owner)
}

// endOf returns how a spell has ended when the next begins.
func (e *Election) endOf(last, next Spell) End {
	switch {
	case last.State != Led:
		return ""
	case next.State == Unknown:
		return Unseen
	case e.wasHeir(next.Owner):
		return HandedOver
	case e.heirStood(last.Owner, next.From):
		return Lost
	}
	return Over
}

// wasHeir reports whether a leader's record has the signature of an heir's: the leader
// before it put it there.
func (e *Election) wasHeir(leader Owner) bool {
	return slices.ContainsFunc(e.Heirs, func(h Spell) bool {
		return h.Owner.signature == leader.signature && leader.signature != ""
	})
}

// heirStood reports whether another candidate than the leader was heir at a time, or just
// before.
func (e *Election) heirStood(leader Owner, at time.Duration) bool {
	return slices.ContainsFunc(e.Heirs, func(h Spell) bool {
		return (h.To == 0 || at-h.To < memory) && !h.Owner.sameCampaign(leader)
	})
}

// seeHeir takes in what the heir's safe holds, and reports whether that is news.
func (e *Election) seeHeir(rec kv.Record, vacant bool, at time.Duration) (news bool) {
	none := vacant || rec.Foreign || machine.NoteOf(rec).Calls != "" // a leader's call for one
	owner := ownerOf(rec)
	if n := len(e.Heirs); n > 0 && e.Heirs[n-1].To == 0 {
		last := &e.Heirs[n-1]
		if !none && last.Owner.sameTerm(owner) {
			news = !last.Owner.equal(owner)
			last.Owner = owner
			return news
		}
		last.To, news = at, true
	}
	if none {
		return news
	}
	e.Heirs = latest(append(e.Heirs, Spell{From: at, Owner: owner}), mostHeirs)
	return true
}

// trouble notes why a safe cannot be watched, or that it can be, and reports whether that
// is news.
func (e *Election) trouble(safe, why string) bool {
	if e.troubles[safe] == why {
		return false
	}
	if e.troubles == nil {
		e.troubles = map[string]string{}
	}
	e.troubles[safe] = why
	e.Trouble = ""
	for _, safe := range []string{leaderSafe, heirSafe, holdSafe} {
		if e.Trouble == "" {
			e.Trouble = e.troubles[safe]
		}
	}
	return true
}

// copy returns what stays as it is while the election goes on.
func (e *Election) copy() Election {
	c := *e
	c.Spells, c.Heirs = slices.Clone(e.Spells), slices.Clone(e.Heirs)
	c.Candidates, c.Marks = slices.Clone(e.Candidates), slices.Clone(e.Marks)
	c.troubles = nil
	return c
}

// latest returns the last most of all.
func latest[T any](all []T, most int) []T {
	if n := len(all) - most; n > 0 {
		return slices.Delete(all, 0, n)
	}
	return all
}
