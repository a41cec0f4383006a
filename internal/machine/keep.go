package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// keep refreshes a record that is ours, and publishes what its owner wants to say.
func (t *turn) keep(l *Lock) {
	if l.Phase == Lapsed && !t.Drain {
		return // it expires by itself
	}
	if l.Fresh {
		l.Fresh = false
		if l.Seen.Known && !l.Seen.Record().Owns(l.Remains.Record()) {
			// A hint: the refresh decides. Not in a tight loop with a watch that is wrong.
			l.Next = min(l.Next, max(t.now.Mono, l.Sent.Mono+t.cfg.Spread))
		}
	}
	rec := l.Remains.Record()
	switch {
	case l.Remains.Kind != Mine:
	case l.Line.Kind != NoPlace && l.Line.Next <= t.now.Mono && l.Next > t.now.Mono: // it was handed over to us while we were in line
		l.Until = never
		t.leaveLine(l)
	case l.Next <= t.now.Mono:
		t.refresh(l)
	case l.Phase != Owner || l.Text == textOf(rec) || l.Later > t.now.Mono:
	case l.Review:
		t.send(l, Get, kv.Record{}, kv.Record{})
	default:
		next := rec
		next.Value, next.Note = l.Text.Value, l.Text.Note
		t.send(l, Publish, rec, next)
	}
}

// refresh refreshes the record. That goes together with others' refreshes if it comes in
// its turn, and not if it is to find out what a watch has shown, or if trust runs short.
func (t *turn) refresh(l *Lock) {
	r := Request{Op: Refresh, Old: l.Remains.Record(), Within: t.cfg.Attempt}
	if l.Phase == Owner {
		left := l.Trust.Left(t.now)
		r.Within = min(r.Within, left)
		r.Shared = l.Tries == 0 && t.now.Mono >= l.Turn && left > t.cfg.TTL/3
	}
	t.request(l, r)
}

// again returns when a record is to be refreshed that was written or refreshed: after Refresh,
// or sooner. Records that were refreshed together will be together again. Leaders' records that
// share a lease come together, in one of a few turns, so that the store keeps the lease alive once
// for all of them.
func (t *turn) again(k Key, a *Answer) time.Duration {
	refresh := t.cfg.Refresh
	next := a.Sent.Mono + refresh
	if k != Lead || a.Record.Lease == "" || a.Sent.Boot == 0 { // the boot clock is the one that elections have in common
		return next - min(a.Ahead, refresh/8)
	}
	late := (a.Sent.Boot + refresh/turns*time.Duration(hash(a.Record.Lease)%turns)) % refresh
	if refresh-late < refresh/64 { // a little early, by clocks that do not quite agree
		return next
	}
	return next - late
}

// turns is how many turns there are from one refresh to the next.
const turns = 16

// hash returns the FNV-1a hash of a text.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// refreshed takes in the answer to a refresh. The lease is trusted from the moment before
// the request left; an answer that comes too late does not bring the trust back, and a
// lost one changes nothing.
func (t *turn) refreshed(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		l.holds(a.Record)
		l.Sent, l.Tries = a.Sent, 0
		l.Turn = t.again(l.Key, a)
		l.Next = l.Turn
		if l.Phase == Owner {
			l.Trust = Trust{Sent: a.Sent, Span: a.Record.TTL - t.cfg.Margin}
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
		l.holds(a.Record)
		l.Review, l.Unsaid = false, 0
		if l.Text == textOf(a.Record) {
			t.emit(Effect{Kind: Said, Key: l.Key, Record: a.Record})
		}
	case Stale, Vacant, Held:
		l.Review = true
	case Invalid:
		l.Text, l.Mute = textOf(l.Remains.Record()), true
		t.emit(Effect{Kind: Unsaid, Key: l.Key, Request: Request{Op: Publish}})
	case Unclear:
		l.Review = true
		t.sayLater(l)
	}
}

// reviewed takes in how the record stands of which we were not sure.
func (t *turn) reviewed(l *Lock, a *Answer) {
	switch {
	case a.Verdict == Vacant, a.Verdict == OK && !a.Record.Owns(l.Remains.Record()):
		l.Remains = Remains{}
		t.ends(l, Taken)
	case a.Verdict == OK:
		if a.Record.Revision == l.Remains.Record().Revision {
			t.sayLater(l) // the store refuses what it shows unchanged
		}
		l.holds(a.Record)
		l.Review = false
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
