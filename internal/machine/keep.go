package machine

import "github.com/electkv/election/kv"

// keep refreshes a record that is ours, and publishes what its owner wants to say.
func (t *turn) keep(l *Lock) {
	if l.Phase == Lapsed && !t.Drain {
		return // it fades
	}
	if l.Fresh {
		l.Fresh = false
		if l.Seen.Known && !l.Seen.Record.Owns(l.Remains.Record) {
			// A hint: the refresh decides. Not in a tight loop with a watch that is wrong.
			l.Next = min(l.Next, max(t.now.Mono, l.Sent.Mono+t.cfg.Spread))
		}
	}
	rec := l.Remains.Record
	switch {
	case l.Remains.Kind != Mine:
	case l.Line.Kind != NoPlace && l.Line.Next <= t.now.Mono && l.Next > t.now.Mono: // it was handed over to us while we were in line
		l.Until = never
		t.leaveLine(l)
	case l.Next <= t.now.Mono:
		within := t.cfg.Attempt
		if l.Phase == Owner {
			within = min(within, l.Trust.Left(t.now))
		}
		t.sendWithin(l, Refresh, rec, kv.Record{}, within)
	case l.Phase != Owner || l.Text == textOf(rec) || l.Later > t.now.Mono:
	case l.Review:
		t.send(l, Get, kv.Record{}, kv.Record{})
	default:
		next := rec
		next.Value, next.Note = l.Text.Value, l.Text.Note
		t.send(l, Publish, rec, next)
	}
}

// refreshed takes in the answer to a refresh. The lease is trusted from the moment before
// the request left; an answer that comes too late does not bring the trust back, and a
// lost one changes nothing.
func (t *turn) refreshed(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		l.Remains.Record, l.Sent, l.Tries = a.Record, a.Sent, 0
		l.Next = a.Sent.Mono + t.cfg.Refresh
		if l.Phase == Owner {
			l.Trust, l.Proved = Trust{Sent: a.Sent, Span: a.Record.TTL - t.cfg.Margin}, true
			t.emit(Effect{Kind: Extended, Key: l.Key, Trust: l.Trust, Record: a.Record})
		}
	case Stale:
		l.Remains = Remains{}
		t.ends(l, Taken)
	default:
		l.Sent, l.Next = a.Sent, t.retry(l)
	}
}

// published takes in the answer to a publication.
func (t *turn) published(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		l.Remains.Record, l.Review, l.Unsaid = a.Record, false, 0
		if l.Text == textOf(a.Record) {
			t.emit(Effect{Kind: Said, Key: l.Key, Record: a.Record})
		}
	case Stale, Vacant, Held:
		l.Review = true
	case Invalid:
		l.Text, l.Mute = textOf(l.Remains.Record), true
		t.emit(Effect{Kind: Unsaid, Key: l.Key, Request: Request{Op: Publish}})
	case Unclear:
		l.Review = true
		t.sayLater(l)
	}
}

// reviewed takes in how the record stands of which we were not sure.
func (t *turn) reviewed(l *Lock, a *Answer) {
	switch {
	case a.Verdict == Vacant, a.Verdict == OK && !a.Record.Owns(l.Remains.Record):
		l.Remains = Remains{}
		t.ends(l, Taken)
	case a.Verdict == OK:
		if a.Record.Revision == l.Remains.Record.Revision {
			t.sayLater(l) // the store refuses what it shows unchanged
		}
		l.Remains.Record, l.Review = a.Record, false
		if l.Text == textOf(a.Record) {
			t.emit(Effect{Kind: Said, Key: l.Key, Record: a.Record})
		}
	default:
		t.sayLater(l)
	}
}

// sayLater sets the time of the next try to publish after one that failed.
func (t *turn) sayLater(l *Lock) {
	l.Later = t.now.Mono + t.backoff(l.Unsaid)
	l.Unsaid = min(l.Unsaid+1, 16)
}
