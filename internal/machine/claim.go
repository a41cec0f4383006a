package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// weigh takes in what the watch shows of a key that is to become ours.
func (t *turn) weigh(l *Lock) {
	rec := l.Seen.Record()
	first := l.Line.Kind != NoPlace && rec.Signature == l.Line.Record().Signature && !rec.Foreign
	if first && t.cfg.Health && !l.Fit {
		t.send(l, Ask, kv.Record{}, kv.Record{}) // and weigh it again
		return
	}
	l.Fresh, l.Fit, l.Denied = false, false, 0
	switch {
	case l.Seen.vacant():
		if l.Remains.Kind == Stray { // gone, though no answer has said that it was we who removed it
			l.Rest = t.now.Mono + 2*t.cfg.Spread
		}
		l.gone()
		l.Tries, l.Rival = 0, Ref{}
		l.Next = never
		if l.Key == Lead {
			t.Memory.Looked = true
			t.mirror()
		}
		if t.entitled(l) && l.Line.Kind != InLine {
			l.Next = max(t.now.Mono+t.hesitation(l), l.Rest)
		}
	case first:
		t.firstInLine(l, rec)
	case t.Wrote(rec) && rec.Signature == l.Signature && l.Remains.Kind == Possible:
		t.accept(l, rec, l.Remains.Since)
	case l.Key == Lead && t.inWaiting(rec):
		t.inherit(l, rec)
	case t.Wrote(rec):
		l.Remains = l.Remains.stray(rec)
		l.Next = t.now.Mono
	default:
		l.gone()
		l.Next, l.Waited = never, true
		if l.Key == Place {
			l.Failed = 0
		}
		t.led(l)
		t.lineUp(l)
		t.size(l, rec)
	}
}

// entitled reports whether the campaign may claim a vacancy of a key: that of the leader's
// is the heir's to claim, where there is one.
func (t *turn) entitled(l *Lock) bool {
	return l.Key == Place || t.Early || t.Place.Phase == Owner
}

// gone notes that a record of ours that was seen there is no longer there. A request of
// unknown outcome may still be carried out.
func (l *Lock) gone() {
	switch l.Remains.Kind {
	case Stray:
		l.Remains, l.Signature = l.Remains.removed(), ""
	case Handed:
		l.Remains = Remains{}
	}
}

// claim makes one attempt on the key, or removes a record of ours that must not be used to
// lead.
func (t *turn) claim(l *Lock) {
	if l.Remains.Kind == Stray {
		t.send(l, Delete, l.Remains.Record(), kv.Record{})
		return
	}
	if t.cfg.Health && !l.Fit {
		t.send(l, Ask, kv.Record{}, kv.Record{})
		return
	}
	l.Fit = false
	if l.Remains.Kind == Handed {
		t.send(l, Refresh, l.Remains.Record(), kv.Record{})
		return
	}
	// A new signature: the record of a delayed copy of an earlier claim, which was refused,
	// must not pass for that of this one.
	if l.Remains.Kind == Nothing || l.Signature == "" {
		l.Signature, l.Unconfirmed = t.sign(), false
	}
	draft := kv.Record{Signature: l.Signature, Value: t.cfg.Value, Note: t.draftNote(l), TTL: t.cfg.TTL}
	if rival := l.Rival.Record(); rival.Signature != "" {
		t.send(l, Displace, rival, draft)
		return
	}
	t.send(l, Create, kv.Record{}, draft)
}

// accept takes the key, unless the proof is too old. It is not refreshed first: a campaign
// that refreshed what it cannot trust could keep all others out for ever, and a store may
// have begun to end a record that is older than its TTL, and grant a refresh all the same
// (Consul does).
func (t *turn) accept(l *Lock, rec kv.Record, sent Instant) {
	t.own(l, rec, Trust{Sent: sent, Span: rec.TTL - t.cfg.Margin})
}

func (t *turn) own(l *Lock, rec kv.Record, trust Trust) {
	if trust.Left(t.now) <= 0 {
		l.Remains = l.Remains.stray(rec)
		l.Next = t.now.Mono
		t.giveUpOnce(l)
		return
	}
	if t.Checkup.Pending = false; t.cfg.Health {
		t.Checkup.Asked = t.now
	}
	var lull moment
	if l.Blind && l.Key == Lead { // else watches are open
		lull = momentAt(t.now.Mono + t.cfg.Lull)
	}
	next := t.again(l.Key, &Answer{Sent: trust.Sent, Record: rec})
	*l = Lock{
		Key: l.Key, Line: l.Line, Phase: Owner, Signature: rec.Signature, Remains: Remains{Kind: Mine, Ref: RefTo(rec)},
		Seen: l.Seen, Fresh: l.Fresh, Waited: l.Waited, Trust: trust, Sent: trust.Sent, Text: textOf(rec), Turn: next, Next: next,
		Lull: lull,
	}
}

// inherit takes over a key that the leader has handed over to us. It is ours at once if
// the lease that backs the record is that of our own place, which has not been broken, and
// is fresh enough to last until the first refresh. Otherwise it is not known how old the record
// is: it is refreshed, and trusted from there.
func (t *turn) inherit(l *Lock, rec kv.Record) {
	place := &t.Place
	if rec.Lease != "" && rec.Lease == place.Remains.Record().Lease && place.Trust.Left(t.now) >= t.cfg.TTL/3 && !t.Checkup.Pending {
		t.own(l, rec, place.Trust)
		return
	}
	l.Remains = Remains{Kind: Handed, Ref: RefTo(rec)}
	l.Next = t.now.Mono
}

// inWaiting reports whether a record of the leader's key has our signature as heir, under
// which we still stand.
func (t *turn) inWaiting(rec kv.Record) bool {
	return t.Place.Phase == Owner && !rec.Foreign && rec.Signature == t.Place.Signature
}

// claimed takes in the answer to a claim.
func (t *turn) claimed(l *Lock, a *Answer) {
	switch a.Verdict {
	case OK:
		if l.Phase != Waiting {
			l.Remains = l.Remains.stray(a.Record)
			return
		}
		if t.contended(l) {
			t.Memory.granted()
		}
		t.accept(l, a.Record, a.Sent)
		return
	case Invalid:
		if t.incapable(l); l.Key == Lead || !t.heirless() {
			t.emit(Effect{Kind: Failed, Key: l.Key})
		}
	case Unclear:
		if l.Sent = a.Sent; !l.Unconfirmed { // a record that is found later is trusted from the first of these sends
			l.Remains, l.Unconfirmed = Remains{Kind: Possible, Since: a.Sent}, true
		}
		t.incapable(l)
	default:
		if t.contended(l) {
			t.Memory.refused()
		}
		l.Denied++
		l.Rival, l.Failed = Ref{}, 0
		t.led(l)
	}
	switch {
	case l.Phase != Waiting, t.giveUpOnce(l):
	case a.Verdict == Invalid && l.Key == Lead, !t.entitled(l):
		l.open(never)
	default:
		l.open(t.retry(l))
	}
}

// giveUpOnce ends an attempt that was to be made once. It reports whether it was.
func (t *turn) giveUpOnce(l *Lock) bool {
	if t.Once {
		t.emit(Effect{Kind: Refused, Key: l.Key})
		l.open(never)
	}
	return t.Once
}

// open ends the time in which the campaign claims without a watch.
func (l *Lock) open(next time.Duration) { l.Blind, l.Next = false, next }

// cleared takes in that our record was there, and is removed, or was not. With it ends its
// signature: a slow watch may still show what was removed, and it must not be taken for
// what the next claim puts in.
func (t *turn) cleared(l *Lock, old kv.Record, a *Answer) {
	if l.Line.Kind == InLine && old.Owns(l.Line.Record()) { // it is given up, whether or not it is gone
		t.loseLine(l)
		return
	}
	if a.Verdict == Unclear || a.Verdict == Invalid {
		l.Next = t.retry(l)
		return
	}
	if l.Key == Place {
		t.abandon(&t.Lead)
	}
	l.Remains, l.Signature = l.Remains.removed(), ""
	l.Tries = 0
	l.Rest = t.now.Mono + 2*t.cfg.Spread // it is the others' turn
	l.open(never)
	if t.entitled(l) {
		l.Next = l.Rest
	}
}

// inherited takes in the answer to the refresh of what was handed over to us.
func (t *turn) inherited(l *Lock, a *Answer) {
	switch {
	case a.Verdict == Stale:
		l.Remains = Remains{}
		l.Next = never
	case a.Verdict != OK:
		l.Next = t.retry(l)
	case t.Place.Phase != Owner: // the lease that backs it may have been broken meanwhile
		l.Remains = l.Remains.stray(a.Record)
		l.Next = t.now.Mono
	default:
		t.accept(l, a.Record, a.Sent)
	}
}

// incapable notes that a claim had no clear answer. An heir whose claims have failed for a
// TTL gives up its place, since it keeps all others from claiming.
func (t *turn) incapable(l *Lock) {
	if !l.Failed.set() {
		l.Failed = momentAt(t.now.Mono)
	}
	if l.Key == Lead && t.now.Mono-l.Failed.at() > t.cfg.TTL {
		t.ends(&t.Place, Sightless)
	}
}

// heirless reports whether the candidate does without the heir's place, since it cannot bid
// for that, or the key holds a foreign or permanent record. By first come that is safe: an
// heir only makes failover faster.
func (t *turn) heirless() bool {
	if !t.cfg.firstCome() || t.Place.Phase != Waiting {
		return false
	}
	rec := t.Place.Seen.Record()
	return t.Place.Failed.set() || rec.Foreign || rec.Permanent
}

// led notes that another candidate has a key. If that is the leader's, the next vacancy is the
// heir's to claim, if there can be an heir.
func (t *turn) led(l *Lock) {
	if l.Key == Lead || t.Lead.Waited {
		t.Early = t.cfg.NoHeir || t.heirless()
	}
}

// lookDue returns when an heir reads the leader's key itself, although it has a watch on it:
// while it is heir, no other candidate watches the leader.
func (l *Lock) lookDue(t *turn) time.Duration {
	if l.Key == Lead && t.Place.Phase == Owner && !l.Blind {
		return max(l.Looked.Mono, l.Sent.Mono) + t.cfg.Refresh
	}
	return never
}

// looked takes in what an heir saw for itself.
func (t *turn) looked(l *Lock, a *Answer) {
	l.Sent = a.Sent
	switch {
	case a.Verdict == OK || a.Verdict == Vacant:
		l.Looked = a.Sent
		l.sees(a.Record)
	case t.now.Since(l.Looked) > t.cfg.TTL:
		t.ends(&t.Place, Sightless)
	}
}
