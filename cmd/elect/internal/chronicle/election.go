package chronicle

import (
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

const (
	// mostSpells, mostHeirs and mostMarks are how many an election keeps, the newest.
	mostSpells = 256
	mostHeirs  = 256
	mostMarks  = 64

	// mostCandidates is how many it keeps, and mostValue how many bytes of a candidate's value.
	mostCandidates = 20
	mostValue      = 200

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

	// Candidates are those that are known to take part, by a roster or because somebody has told:
	// the leader and the heir, if they are among them, and those that are named first, in the order
	// in which they are named.
	Candidates     []Candidate
	CandidateCount int    // how many there are in all
	Unlisted       string // why the roster cannot be read; empty if it can be

	Marks []Mark // what the observer was told

	seq      uint64 // of its last change
	listed   bool   // its name was found
	recalled bool   // the terms before the first that was seen are known, if anybody knows them
	troubles map[string]string
}

// A Candidate is one that is known to take part. Candidates can be compared with ==.
type Candidate struct {
	ID      string // empty if foreign
	State   string // in a word or two; empty if what the observer sees tells: see [Election.Standing]
	Rank    int
	Value   string    // its beginning
	Since   time.Time // when it came, by its own wall clock; zero if unknown
	Foreign bool      // it is a record in the roster that another program wrote

	signs string // how the signatures of its campaigns begin, if that is known
}

// owns reports whether a record is a candidate's.
func (c *Candidate) owns(o Owner) bool {
	return c.ID == o.ID && strings.HasPrefix(o.signature, c.signs)
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

// The words for those that the observer sees.
const (
	leads  = "leads"
	isHeir = "heir"
)

// Standing says in a word what one of the candidates is.
func (e *Election) Standing(c Candidate) string {
	heir, next := e.Heir()
	now := e.Now()
	switch {
	case c.Foreign:
		return "foreign"
	case c.State != "":
		return c.State
	case now.State == Led && c.owns(now.Owner):
		return leads
	case next && c.owns(heir.Owner):
		return isHeir
	}
	return "waits"
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
	s := e.Spells[i]
	why := because(s.Reason)
	switch {
	case s.End == HandedOver && why != "":
		return "handed over to " + e.Spells[i+1].Owner.ID + ", its heir, without a gap: " + why
	case s.End == HandedOver:
		return "handed over to " + e.Spells[i+1].Owner.ID + ", its heir, without a gap"
	case s.End == Lost && why != "":
		return "lost: " + why
	case s.End != "" && why != "":
		return "ended: " + why
	case s.End == Lost:
		return "lost: it did not hand over, though it had an heir"
	case s.End == Over && s.Told:
		return "given up or lost: it did not hand over"
	case s.End == Over:
		return "given up or lost: it had no heir"
	case s.End == Unseen:
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
	if next.State == Led {
		e.recall(rec, at, time.Now())
	}
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

// setCandidates takes in who takes part, or why that cannot be told, and reports whether that is
// news.
func (e *Election) setCandidates(all []Candidate, why string) (news bool) {
	some := e.foremost(all)
	news = !slices.Equal(some, e.Candidates) || len(all) != e.CandidateCount || why != e.Unlisted
	e.Candidates, e.CandidateCount, e.Unlisted = some, len(all), why
	return news
}

// foremost returns the candidates that are kept.
func (e *Election) foremost(all []Candidate) []Candidate {
	if len(all) <= mostCandidates {
		return slices.Clone(all)
	}
	kept := []int{}
	for _, first := range []bool{true, false} {
		for i, c := range all {
			if word := e.Standing(c); len(kept) < mostCandidates && (word == leads || word == isHeir) == first {
				kept = append(kept, i)
			}
		}
	}
	slices.Sort(kept)
	some := []Candidate{}
	for _, i := range kept {
		some = append(some, all[i])
	}
	return some
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
