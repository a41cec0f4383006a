package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// noteHeir takes in whom the heir's key shows.
func (t *turn) noteHeir() {
	rec := t.Place.Seen.Record()
	switch {
	case t.Stage != Leading:
	case !t.succeededBy(rec):
		t.Heir = Ref{}
	case rec.Owns(t.Heir.Record()):
		t.Heir = t.Place.Seen.Ref
	default:
		t.Heir, t.HeirSince = t.Place.Seen.Ref, t.now
	}
}

// giveWay has the heir called if it has been so for long enough and comes before the
// leader, or if the term is as long as it may be. The term ends when the heir answers.
func (t *turn) giveWay() {
	t.reckon()
	if t.dueToGiveWay() <= t.now.Mono {
		t.Calling = true
		t.emit(Effect{Kind: Call, Key: Place, Record: t.Heir.Record()})
	}
}

// dueToGiveWay returns when that is.
func (c *Campaign) dueToGiveWay() time.Duration {
	if c.Heir.Record().Signature == "" || c.Calling {
		return never
	}
	due := c.Preference.Since
	if most := c.cfg.MaxTerm; most > 0 {
		due = min(due, c.Began.Mono+most)
	}
	if due != never && c.CallAgain.set() {
		due = max(due, c.CallAgain.at())
	}
	return due
}

// A Preference says from when on the order wants the heir to lead in our place.
type Preference struct {
	Since time.Duration // never if it does not

	heir, mine Ref     // the records from which that follows
	stands     Instant // since when the heir stands
}

// reckon works out from when on the order prefers the heir, if anything has changed.
func (t *turn) reckon() {
	if t.cfg.firstCome() {
		t.Preference.Since = never
		return
	}
	heir, lead, was := t.Heir.Record(), t.Lead.Remains.Record(), t.Preference
	if says(heir, was.heir.Record()) && says(lead, was.mine.Record()) && t.HeirSince == was.stands {
		return
	}
	t.Preference = Preference{Since: never, heir: t.Heir, mine: t.Lead.Remains.Ref, stands: t.HeirSince}
	id := IDOf(heir.Signature)
	if id == "" {
		return
	}
	mine := LeaderOf(lead)
	next, me := Contender{ID: id, Rank: NoteOf(heir).Rank}, mine.contender()
	if t.cfg.before(me, next, me) {
		t.Preference.Since = t.HeirSince.Mono + probation(t.cfg.Stability, mine.Strikes[id])
	}
}

// says reports whether a record says the same of its owner as another.
func says(rec, other kv.Record) bool {
	return rec.Note == other.Note && IDOf(rec.Signature) == IDOf(other.Signature)
}
