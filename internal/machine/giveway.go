package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// noteHeir takes in whom the heir's key shows.
func (t *turn) noteHeir() {
	rec := t.Place.Seen.Record
	switch {
	case t.Stage != Leading:
	case !t.succeededBy(rec):
		t.Heir = kv.Record{}
	case rec.Owns(t.Heir):
		t.Heir = rec
	default:
		t.Heir, t.HeirSince = rec, t.now
	}
}

// giveWay has the heir called if it has been so for long enough and comes before the
// leader, or if the term is as long as it may be. The term ends when the heir answers.
func (t *turn) giveWay() {
	t.reckon()
	if t.dueToGiveWay() <= t.now.Mono {
		t.Calling = true
		t.emit(Effect{Kind: Call, Key: Place, Record: t.Heir})
	}
}

// dueToGiveWay returns when that is.
func (c *Campaign) dueToGiveWay() time.Duration {
	if c.Heir.Signature == "" || c.Calling {
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

	heir, mine string  // the notes from which that follows
	id         string  // the heir's
	stands     Instant // since when
}

// reckon works out from when on the order prefers the heir, if anything has changed.
func (t *turn) reckon() {
	p := Preference{Since: never, heir: t.Heir.Note, mine: t.Lead.Remains.Record.Note, id: IDOf(t.Heir.Signature), stands: t.HeirSince}
	if was := t.Preference; p.heir == was.heir && p.mine == was.mine && p.id == was.id && p.stands == was.stands {
		return
	}
	t.Preference = p
	if p.id == "" || t.cfg.firstCome() {
		return
	}
	mine := LeaderOf(t.Lead.Remains.Record)
	next, me := Contender{ID: p.id, Rank: NoteOf(t.Heir).Rank}, mine.contender()
	if t.cfg.before(me, next, me) {
		t.Preference.Since = p.stands.Mono + probation(t.cfg.Stability, mine.Strikes[p.id])
	}
}
