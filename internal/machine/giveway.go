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
	due := never
	if most := c.cfg.MaxTerm; most > 0 {
		due = c.Began.Mono + most
	}
	mine := ReignOf(c.Lead.Remains.Record)
	next, me := Contender{ID: IDOf(c.Heir.Signature), Rank: NoteOf(c.Heir).Rank}, mine.contender()
	if c.cfg.before(me, next, me) {
		due = min(due, c.HeirSince.Mono+probation(c.cfg.Stability, mine.Strikes[next.ID]))
	}
	if due != never && c.CallAgain.set() {
		due = max(due, c.CallAgain.at())
	}
	return due
}
