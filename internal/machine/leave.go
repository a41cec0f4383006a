package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// remove removes our record, or hands it over. If that does not succeed in time, the record is
// left to expire, because it is not refreshed any more.
func (t *turn) remove(l *Lock) {
	rec := l.Remains.Record()
	switch {
	case l.Remains.Kind == Nothing && l.Line.Kind == NoPlace:
		l.idle()
	case l.Until <= t.now.Mono:
		t.emit(Effect{Kind: Abandoned, Key: l.Key, Record: rec})
		l.idle()
	case l.Line.Kind == NoPlace && t.mayReturn(l):
	case l.Next > t.now.Mono:
	case t.leaveLine(l):
	case l.Remains.Kind == Possible || l.Remains.Kind == Offered:
		t.sendWithin(l, Get, kv.Record{}, kv.Record{}, t.remaining(l))
	case l.Remains.Kind != Mine || l.Offers == 0:
		t.sendWithin(l, Delete, rec, kv.Record{}, t.remaining(l))
	case l.HeirDue:
		t.sendWithin(l, Vacate, rec, kv.Record{}, t.remaining(l))
	case l.Review:
		t.sendWithin(l, Get, kv.Record{}, kv.Record{}, t.remaining(l))
	default:
		heir := l.Heir.Record()
		next := heir
		next.Note = t.noteFor(heir)
		t.sendWithin(l, HandOver, rec, next, t.remaining(l))
		t.out[len(t.out)-1].Request.Heir = heir
	}
}

// mayReturn reports whether something may yet be handed over to us, so that it is too
// early to look whether anything is there.
func (t *turn) mayReturn(l *Lock) bool {
	return l.Key == Lead && t.Place.Phase == Leaving && l.Remains.Kind != Mine
}

// remaining returns how long a request may take.
func (t *turn) remaining(l *Lock) time.Duration { return min(t.cfg.Attempt, l.Until-t.now.Mono) }

// found takes in what the key holds that is to be left.
func (t *turn) found(l *Lock, a *Answer) {
	switch {
	case a.Verdict == Unclear:
		l.Next = t.retry(l)
	case l.Remains.Kind == Mine && a.Verdict == OK && a.Record.Owns(l.Remains.Record()):
		l.holds(a.Record)
		l.Review = false
	case l.Remains.Kind == Mine:
		t.lostWhileLeaving(l)
	case a.Verdict == OK && t.Wrote(a.Record):
		l.Remains, l.Tries = l.Remains.stray(a.Record), 0
	case l.Remains.Kind == Offered && a.Verdict == OK && t.mayYetCome(l, a):
	case l.Remains.Kind == Possible && (a.Verdict == Vacant || a.Record == l.Rival.Record()): // a request may still be carried out
		l.Next = t.retry(l)
	default:
		l.Remains = Remains{}
	}
}

// mayYetCome has the key looked at again while a hand-over to us may be half done: its leader
// may have seen our record in the heir's key just before that was gone. That leader's request
// ends in time. A candidate that withdraws does not wait for that long.
func (t *turn) mayYetCome(l *Lock, a *Answer) bool {
	if !t.cfg.Steps {
		return false
	}
	if l.Remains.Since == (Instant{}) {
		l.Remains.Since = a.Sent
	}
	within := t.cfg.Attempt
	if t.Stage == Quitting {
		within = t.cfg.Spread
	}
	l.Next = t.retry(l)
	return t.now.Since(l.Remains.Since) <= within && l.Next < l.Until
}

// removed takes in the answer to a delete.
func (t *turn) removed(l *Lock, old kv.Record, a *Answer) {
	switch {
	case l.Line.Kind == InLine && old.Owns(l.Line.Record()):
		if l.Line = (Line{Next: never}); a.Verdict == Unclear {
			l.Line = Line{Kind: InLine, Ref: RefTo(old), Next: t.retry(l)}
			l.Next = l.Line.Next
		}
	case a.Verdict == Unclear || a.Verdict == Invalid:
		l.Asked = true
		l.Next = t.retry(l)
	case a.Verdict == Stale && l.Remains.Kind == Mine:
		t.lostWhileLeaving(l)
	default:
		t.given(l)
	}
}

// lostWhileLeaving notes that our record was not there any more. If it was not we who
// removed it, another candidate may have led beside us.
func (t *turn) lostWhileLeaving(l *Lock) {
	if !l.Asked {
		t.emit(Effect{Kind: Missing, Key: l.Key, Record: l.Remains.Record()})
	}
	t.given(l)
}

// given notes that our record is no longer there. As long as our record as heir may be there,
// the next leader may hand over to us.
func (t *turn) given(l *Lock) {
	l.Remains = l.Remains.removed()
	if l.Key == Lead && t.Place.Phase == Leaving && l.Remains.Kind == Nothing {
		l.Remains.Kind = Offered
	}
}

// offer prepares to hand over to the heir that the watch shows. If it shows none, the record is
// removed on condition that there is no heir: a watch may be late, and a candidate that has just
// become heir must not be passed over.
func (t *turn) offer(l *Lock) {
	l.Offers, l.HeirDue = 2, t.Look || t.Place.Seen.Record() == kv.Record{}
	t.choose(l, t.Place.Seen.Ref)
}

// choose takes a record in the heir's key for that of the heir, if it is one.
func (t *turn) choose(l *Lock, rec Ref) {
	if l.Heir = rec; !l.HeirDue && !t.succeededBy(rec.Record()) {
		l.Offers = 0
	}
}

// vacated takes in that our record was removed, or that there is an heir.
func (t *turn) vacated(l *Lock, old kv.Record, a *Answer) {
	l.HeirDue = false
	if a.Verdict == Held {
		t.choose(l, RefTo(a.Record))
		return
	}
	l.Offers = 0 // there is no heir, or it is not known
	t.removed(l, old, a)
}

// handedOver takes in the answer to a hand-over.
func (t *turn) handedOver(l *Lock, a *Answer) {
	l.Offers--
	switch a.Verdict {
	case OK:
		t.emit(Effect{Kind: HandedOver, Key: l.Key, Record: a.Record})
		t.given(l)
	case Unclear: // the next try finds out
		l.Asked, l.Offers = true, l.Offers+1
		l.Next = t.retry(l)
	case Stale: // our record is not as we know it, or the heir's is not
		l.Review, l.HeirDue = true, true
	default:
		l.Offers = 0
	}
}

// succeededBy reports whether a record in the heir's key is that of an heir: not another
// program's lock, a call, or a record of our own.
func (t *turn) succeededBy(rec kv.Record) bool {
	return rec.Signature != "" && !rec.Foreign && !rec.Permanent && !t.Wrote(rec) && NoteOf(rec).Calls == ""
}
