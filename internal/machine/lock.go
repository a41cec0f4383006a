package machine

import (
	"math"
	"time"

	"github.com/electkv/election/kv"
)

// never is a moment that does not come.
const never = time.Duration(math.MaxInt64)

// A Phase is what a campaign does about one key.
type Phase uint8

// The phases.
//
//	         want                    accepted               end               leave
//	Idle ───────────▶ Waiting ───────────────────▶ Owner ─────────▶ Lapsed ─────────▶ Leaving ──▶ Idle
//	                     │                           │                                   ▲
//	                     └───────────────────────────┴───────────── leave ───────────────┘
const (
	Idle    Phase = iota // the key is none of our business
	Waiting              // it is to become ours
	Owner                // it is ours, and trusted to be
	Lapsed               // it was ours; the record is kept while work goes on
	Leaving              // what is left of ours is being removed
)

func (p Phase) String() string {
	return [...]string{"idle", "waiting", "owner", "lapsed", "leaving"}[p]
}

// A Text is what an owner says in its record beside the signature.
type Text struct{ Value, Note string }

func textOf(rec kv.Record) Text { return Text{rec.Value, rec.Note} }

// A Lock is what a campaign has and wants of one key. A term and an heir's place are two
// uses of it. It has one request at a time on its way; what a watch shows meanwhile is
// weighed after the answer.
type Lock struct {
	Key         Key
	Phase       Phase
	Unconfirmed bool  // a claim under the signature had no clear answer
	Fresh       bool  // what the watch showed last was not weighed yet
	Blind       bool  // the first claim goes out before there is a watch
	Fit         bool  // the health check has agreed to the claim that is due
	Waited      bool  // another had the key
	Mute        bool  // the store will not take what an owner was to publish
	Review      bool  // the record is not as we know it: look first
	Asked       bool  // the store was asked to remove the record, or to hand over, and may have done so
	HeirDue     bool  // read the heir's key to find the heir
	Tries       uint8 // that failed in a row
	Unsaid      uint8 // tries to publish that failed in a row
	Offers      int8  // how often it may still try to hand over
	Denied      int   // claims refused since the watch last showed anything

	Signature string // of our record, present or next
	Remains   Remains
	Pending   Pending // the request that is on its way; none if its Op is NoOp
	Seen      Sight   // what the watch showed last
	Rival     Ref     // another heir's record, which is to be displaced
	Heir      Ref     // to whom to hand over
	Line      Line    // our place in the line before the key

	Next  time.Duration // when to claim, refresh or remove
	Turn  time.Duration // when a refresh comes in its turn
	Rest  time.Duration // no vacancy is claimed before
	Until time.Duration // when removing is given up
	Later time.Duration // do not try to publish before

	Failed moment  // since when claims fail
	Lull   moment  // until then a new leader that has no watches opens none: many terms are short
	Looked Instant // when an heir last saw the leader's key, or began to look
	Trust  Trust   // of an owner
	Sent   Instant // when the claim or the last refresh left
	Text   Text    // what an owner is to publish
}

// A Pending is what is known of a request that is on its way.
type Pending struct {
	ID  uint32
	Op  Op
	old Ref // what it is to remove
	// Void is set of a look whose answer counts no more. It left before the key was to be left:
	// what it has seen is no proof that nothing of ours came afterwards. Or a watch has shown
	// something meanwhile, which may be newer.
	Void bool
}

// pending returns what is to be known of a request.
func (l *Lock) pending(r Request) Pending {
	p := Pending{ID: r.ID, Op: r.Op}
	if r.Op == Delete || r.Op == Vacate {
		p.old = l.Remains.At(r.Old)
	}
	return p
}

// A Sight is what a lock keeps of a Sighting.
type Sight struct {
	Known bool
	Ref
}

// vacant reports whether the key was seen without a record.
func (s Sight) vacant() bool { return s.Known && s.Record() == kv.Record{} }

// sees takes in what the key was seen to hold.
func (l *Lock) sees(rec kv.Record) {
	l.Seen, l.Fresh = Sight{true, l.Seen.At(rec)}, true
	if rec == l.Remains.Record() {
		l.Seen.Ref = l.Remains.Ref
	}
}

// holds takes in how our record stands.
func (l *Lock) holds(rec kv.Record) { l.Remains.Ref = l.Remains.At(rec) }

// Says reports whether the record is known to say this, and nothing is on its way that
// could change it.
func (l *Lock) Says(text Text) bool {
	return l.Phase == Owner && !l.Review && l.Pending.Op != Publish && textOf(l.Remains.Record()) == text
}

// busy reports whether a request is on its way.
func (l *Lock) busy() bool { return l.Pending.Op != NoOp }

// idle forgets all about the key but what was seen there and what may be left there.
func (l *Lock) idle() { *l = Lock{Key: l.Key, Seen: l.Seen, Next: never} }

// want has the key claimed, but not before some moment: at once, blindly, or when a watch
// shows it vacant.
func (t *turn) want(l *Lock, rest time.Duration, blind bool) {
	blind = blind && rest <= t.now.Mono
	*l = Lock{Key: l.Key, Phase: Waiting, Blind: blind, Rest: rest, Next: never, Looked: t.now, Line: Line{Next: never}}
	if blind {
		l.Next = rest
	}
}

// leave has what is left of ours removed, for as long as it may take. That is counted from
// when it was first told.
func (t *turn) leave(l *Lock, within time.Duration) {
	until := never
	if within < never-t.now.Mono {
		until = t.now.Mono + within
	}
	switch l.Phase {
	case Idle:
		return
	case Leaving:
		until = min(until, l.Until)
	case Waiting, Owner, Lapsed:
	}
	l.Phase, l.Next, l.Tries, l.Until = Leaving, t.now.Mono, 0, until
	switch l.Pending.Op {
	case NoOp:
	case Create, Displace: // its answer says what there is to remove
		t.hurry(l, min(t.cfg.Attempt/2, within))
	case Get:
		l.Pending.Void = true
		t.hurry(l, 0)
	default:
		t.hurry(l, 0)
	}
}

// Expiry returns when the trust of an owner ends, on the monotonic clock; never if it is no owner.
func (l *Lock) Expiry() time.Duration {
	if l.Phase != Owner {
		return never
	}
	return l.Trust.Sent.Mono + l.Trust.Span
}

// expire ends what is not trusted any more.
func (t *turn) expire(l *Lock) {
	if l.Phase == Owner && l.Trust.Left(t.now) <= 0 {
		t.ends(l, Expired)
	}
}

// act does what is due.
func (t *turn) act(l *Lock) {
	t.expire(l)
	if l.busy() {
		return
	}
	switch l.Phase {
	case Waiting:
		if l.Fresh {
			t.weigh(l)
		}
		switch {
		case l.Phase != Waiting:
		case t.lineDue(l) <= t.now.Mono:
			t.queue(l)
		case l.Next <= t.now.Mono:
			t.claim(l)
		case l.lookDue(t) <= t.now.Mono:
			t.send(l, Get, kv.Record{}, kv.Record{})
		}
	case Owner, Lapsed:
		if l.Lull.set() && l.Lull.at() <= t.now.Mono {
			l.Lull = 0
		}
		t.keep(l)
	case Leaving:
		t.remove(l)
	}
}

// send sends a request that may take as long as any.
func (t *turn) send(l *Lock, op Op, old, next kv.Record) {
	t.sendWithin(l, op, old, next, t.cfg.Attempt)
}

func (t *turn) sendWithin(l *Lock, op Op, old, next kv.Record, within time.Duration) {
	t.request(l, Request{Op: op, Old: old, New: next, Within: within})
}

// request sends a request, which gets a number and the key that it is about.
func (t *turn) request(l *Lock, r Request) {
	t.Requests++
	r.ID, r.Key = t.Requests, l.Key
	r.Patient = l.Phase == Waiting && r.Op.patient()
	l.Pending = l.pending(r)
	t.emit(Effect{Kind: Send, Key: l.Key, Request: r})
}

// hurry bounds the request that is on its way.
func (t *turn) hurry(l *Lock, within time.Duration) {
	t.emit(Effect{Kind: Hurry, Key: l.Key, Request: Request{ID: l.Pending.ID, Op: l.Pending.Op, Within: within}})
}

// retry sets the time of the next try after one that failed: later each time, up to a
// bound, and spread, so that candidates that failed together do not come back together.
func (t *turn) retry(l *Lock) time.Duration {
	d := t.backoff(l.Tries)
	l.Tries = min(l.Tries+1, 16)
	return t.now.Mono + d
}

func (t *turn) backoff(tries uint8) time.Duration {
	d := t.cfg.Pause
	if tries < 16 {
		d = min(t.cfg.Spread<<tries, t.cfg.Pause)
	}
	return d/2 + t.jitter(d/2+1)
}
