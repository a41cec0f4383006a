package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// A Line is our place in the line for a key (kv.Queue), as the clients of some locks keep
// one. When those before it have gone, the place is the record in the key, even if no client
// reads it.
type Line struct {
	Kind   LineKind
	Ref                  // to the record of the place; of Unsure, what was to be put there
	Stayed Instant       // when the place was last said to be kept: the trust in it, if its turn comes
	Next   time.Duration // when to say so again, or to join
}

// A LineKind says whether there is a place.
type LineKind uint8

// The cases.
const (
	NoPlace LineKind = iota
	Unsure           // a join had no clear answer: another one finds what it has left
	InLine
)

// lineUp has the campaign join the line, now that another has the key.
func (t *turn) lineUp(l *Lock) {
	if l.Key == Lead && t.cfg.Lines && l.Line.Kind == NoPlace && l.Line.Next == never {
		l.Line.Next = t.now.Mono
	}
}

// lineDue returns when there is something to do about the line.
func (t *turn) lineDue(l *Lock) time.Duration {
	if l.Key == Place || !t.cfg.Lines {
		return never
	}
	return l.Line.Next
}

// queue joins the line, or stays in it.
func (t *turn) queue(l *Lock) {
	switch {
	case t.cfg.Health && !l.Fit:
		t.send(l, Ask, kv.Record{}, kv.Record{})
	case l.Line.Kind == InLine && t.worth(l.Line.Record(), l.Line.Stayed).Left(t.now) <= 0:
		t.loseLine(l) // a place that we could not lead by might keep all others out for ever
	case l.Line.Kind == InLine:
		l.Fit = false
		t.send(l, Stay, l.Line.Record(), kv.Record{})
	default:
		l.Fit = false
		if l.Line.Kind == NoPlace || t.worth(l.Line.Record(), l.Line.Stayed).Left(t.now) <= 0 {
			draft := kv.Record{Signature: t.sign(), Value: t.cfg.Value, TTL: t.cfg.TTL}
			if !t.cfg.NoHeir { // else there is nothing to tell, and since when it leads is not known yet
				draft.Note = t.draftNote(l)
			}
			l.Line = Line{Ref: RefTo(draft)}
		}
		t.send(l, Join, kv.Record{}, l.Line.Record())
	}
}

// worth returns the trust in a record that the store had at the instant sent.
func (t *turn) worth(rec kv.Record, sent Instant) Trust {
	return Trust{Sent: sent, Span: rec.TTL - t.cfg.Margin}
}

// loseLine ends a place. Its record is left to expire.
func (t *turn) loseLine(l *Lock) {
	l.Line = Line{Next: t.retry(l)}
}

// joined takes in the answer to a join. After one that was not clear, a place is worth no
// more than the first join that it may be of.
func (t *turn) joined(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		sent := a.Sent
		if l.Line.Kind == Unsure {
			sent = l.Line.Stayed
		}
		l.Line = Line{Kind: InLine, Ref: RefTo(a.Record), Stayed: sent, Next: a.Sent.Mono + t.cfg.Refresh}
		l.Tries = 0
	case Invalid:
		t.emit(Effect{Kind: Failed, Key: l.Key})
		l.Line.Next = never
	default:
		if l.Line.Kind == NoPlace {
			l.Line.Kind, l.Line.Stayed = Unsure, a.Sent
		}
		l.Line.Next = t.retry(l)
	}
	if l.Phase == Leaving && l.Line.Kind == Unsure {
		l.Next = t.retry(l)
	}
}

// stayed takes in whether the place is kept, and whether it is first.
func (t *turn) stayed(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		l.Line.Ref, l.Line.Stayed, l.Line.Next = l.Line.At(a.Record), a.Sent, a.Sent.Mono+t.cfg.Refresh
		l.Tries = 0
		if a.Leads {
			t.firstInLine(l, a.Record)
		}
	case Stale:
		t.loseLine(l)
	default:
		l.Line.Next = t.retry(l)
	}
}

// firstInLine leads by a place whose turn has come.
func (t *turn) firstInLine(l *Lock, rec kv.Record) {
	sent := l.Line.Stayed
	l.Line = Line{Next: never}
	if l.Phase != Waiting {
		l.Remains = l.Remains.stray(rec)
		return
	}
	t.accept(l, rec, sent)
	if l.Phase == Owner && !t.cfg.NoHeir {
		l.Text.Note = t.draftNote(l) // what the place says is as old as that
	}
}

// leaveLine gives the place up, if there is one or may be. It reports whether there was
// something to do.
func (t *turn) leaveLine(l *Lock) bool {
	switch l.Line.Kind {
	case Unsure:
		t.sendWithin(l, Join, kv.Record{}, l.Line.Record(), t.remaining(l))
	case InLine:
		t.sendWithin(l, Delete, l.Line.Record(), kv.Record{}, t.remaining(l))
	default:
		return false
	}
	return true
}
