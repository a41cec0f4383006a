package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// An Event is what a step takes in.
type Event struct {
	Kind     EventKind
	Key      Key           // of Saw
	Sighting Sighting      // of Saw
	Answer   Answer        // of Answered
	Text     Text          // of Say
	Rest     time.Duration // of Enter: leave a vacancy to the others for so long
	Within   time.Duration // of Withdraw and Release: how long removing may take
	Once     bool          // of Enter
	Drain    bool          // of Enter
	Cause    Cause         // of End
	Wall     int64         // what the wall clock shows, in Unix milliseconds: for people, in what is written now
	Past     string        // the terms that are over, likewise
	Look     bool          // of End: a watch may not show the present heir yet
}

// An EventKind is one kind of event.
type EventKind uint8

// The events.
const (
	Tick     EventKind = iota // time has passed
	Enter                     // begin to compete
	Saw                       // a watch shows a key
	Answered                  // a request was answered
	Say                       // publish a text with the leader's record
	End                       // end the term
	Fit                       // the health check of an owner has agreed
	Sick                      // the health check of an owner has failed
	Withdraw                  // give the campaign up
	Release                   // the work has stopped: free the key
	Silent                    // the heir that was called did not answer
)

// Step returns the campaign after an event, and what is to be done. It depends on nothing
// else than its arguments. Due says when it wants to be called again.
func Step(c Campaign, now Instant, e Event) (Campaign, []Effect) {
	effects := c.Step(now, &e, nil)
	return c, effects
}

// Step takes an event in. It appends to out what is to be done.
func (c *Campaign) Step(now Instant, e *Event, out []Effect) []Effect {
	t := turn{Campaign: c, now: now, wall: e.Wall, past: e.Past, out: out}
	t.expire(&t.Place) // what has run out, no event brings back
	t.expire(&t.Lead)
	t.take(e)
	t.settle()
	return t.out
}

func (t *turn) take(e *Event) {
	switch e.Kind {
	case Tick:
	case Enter:
		t.enter(e)
	case Saw:
		l := t.lock(e.Key)
		l.sees(e.Sighting.Record)
		if e.Key == Place {
			t.noteHeir()
		}
		if l.Phase == Waiting && l.Pending.Op == Get { // it asks for what has just been seen
			l.Looked, l.Pending.Void = t.now, true
			t.hurry(l, 0)
		}
	case Answered:
		t.answered(&e.Answer)
	case Say:
		if t.Lead.Phase == Owner {
			t.Lead.Text, t.Lead.Later, t.Lead.Unsaid = e.Text, 0, 0
		}
	case End:
		t.Look = e.Look
		t.ends(&t.Lead, e.Cause)
	case Fit:
		t.Checkup.Pending = false
	case Sick:
		t.Checkup.Pending = false
		t.sick()
	case Withdraw, Release:
		t.quit(e.Within)
	case Silent:
		t.Calling, t.CallAgain = false, momentAt(t.now.Mono+t.cfg.TTL)
	}
}

// settle does what is due until nothing is.
func (t *turn) settle() {
	for {
		before := t.progress()
		t.advance()
		t.examine()
		t.act(&t.Place)
		t.act(&t.Lead)
		if t.progress() == before {
			return
		}
	}
}

// A progress is what changes whenever something that was due is done. That nothing else
// does is what the explorer checks: it takes each step twice.
type progress struct {
	stage       Stage
	calling     bool
	checkup     Checkup
	effects     int
	lead, place lockProgress
}

type lockProgress struct {
	phase    Phase
	fresh    bool
	remains  RemainsKind
	next     time.Duration
	line     LineKind
	lineNext time.Duration
	say      bool
}

func (t *turn) progress() progress {
	return progress{t.Stage, t.Calling, t.Checkup, len(t.out), t.Lead.progress(), t.Place.progress()}
}

func (l *Lock) progress() lockProgress {
	return lockProgress{
		phase: l.Phase, fresh: l.Fresh, remains: l.Remains.Kind, next: l.Next,
		line: l.Line.Kind, lineNext: l.Line.Next, say: l.Text == textOf(l.Remains.Record()),
	}
}

// enter begins the campaign.
func (t *turn) enter(e *Event) {
	t.Stage, t.Once, t.Drain = Standing, e.Once, e.Drain
	t.Early = t.cfg.firstCome() || e.Once || t.cfg.NoHeir
	t.Rest = t.now.Mono + e.Rest
	if e.Rest > 0 && !t.cfg.NoHeir {
		t.Rest += t.cfg.Crowd
	}
	if t.Early {
		t.want(&t.Lead, t.Rest, true)
	}
}

// advance takes the campaign from stage to stage.
func (t *turn) advance() {
	switch t.Stage {
	case Standing:
		switch {
		case t.Lead.Phase == Owner:
			t.elected()
		case t.cfg.NoHeir, t.Once:
		default:
			t.succeed()
		}
	case Leading:
		t.giveWay()
	case Quitting:
		if t.Lead.Phase == Idle && t.Place.Phase == Idle {
			t.Stage = Done
			t.emit(Effect{Kind: Left})
		}
	}
}

// succeed competes for the heir's place, and as heir for the leader's.
func (t *turn) succeed() {
	lead, place := &t.Lead, &t.Place
	switch {
	case place.Phase == Lapsed: // no longer heir: first make sure that nothing is handed over to us
		if t.now.Since(place.Trust.Sent) > t.cfg.TTL {
			t.Backoff = 0
		}
		d := t.backoff(t.Backoff)
		t.HoldOff, t.Backoff = d, t.Backoff+1
		t.Former = place.Signature
		t.Rest = t.now.Mono + 2*t.cfg.Spread + t.cfg.Crowd
		t.leave(place, t.cfg.Attempt)
		t.abandon(lead)
	case place.Phase == Owner && lead.Phase == Idle:
		t.want(lead, t.now.Mono+t.courtesy(), !t.cfg.firstCome())
	case t.heirless() && lead.Phase == Idle:
		t.Early = true
		t.want(lead, t.now.Mono, true)
	case t.Early || place.Phase == Owner || place.Phase == Leaving:
	case place.Phase == Idle && lead.Phase != Leaving:
		t.want(place, t.Rest, !t.mayFollow())
	case lead.Phase == Waiting && lead.forgotten(t):
		t.leave(lead, t.cfg.Attempt)
	}
}

// forgotten reports whether nothing of ours is likely to come to a key any more.
func (l *Lock) forgotten(t *turn) bool {
	switch l.Remains.Kind {
	case Nothing:
		return !l.busy()
	case Possible:
		return t.now.Since(l.Sent) > t.cfg.TTL
	}
	return false
}

// elected begins the term.
func (t *turn) elected() {
	t.Stage, t.Began = Leading, t.Lead.Trust.Sent
	t.Memory.leads(LeaderOf(t.Lead.Remains.Record()), t.now)
	t.emit(Effect{Kind: Elected, Key: Lead, Record: t.Lead.Remains.Record(), Trust: t.Lead.Trust})
	t.noteHeir()                                  // a watch may have shown it before, and does not repeat itself
	t.leave(&t.Place, t.cfg.Fading+t.cfg.Attempt) // by then nothing is there any more
}

// ends notes that we no longer own a key.
func (t *turn) ends(l *Lock, cause Cause) {
	if l.Phase != Owner {
		return
	}
	l.Phase = Lapsed
	if l.Key == Lead {
		t.Stage, t.Cause, t.Ended = Over, cause, t.now
		if !t.Drain {
			l.Next = never
		}
	}
	t.emit(Effect{Kind: Ended, Key: l.Key, Record: l.Remains.Record(), Cause: cause})
}

// abandon leaves the leader's key: our record as heir is gone or going, and the leader may
// have handed over to us while it was there.
func (t *turn) abandon(l *Lock) {
	l.mayBeOffered()
	t.leave(l, 2*t.cfg.Attempt)
	t.Early = false // the heir's place comes first again
}

// mayBeOffered notes that the leader may put our signature there.
func (l *Lock) mayBeOffered() {
	if l.Phase == Idle {
		l.Phase = Waiting
	}
	if l.Remains.Kind == Nothing {
		l.Remains.Kind = Offered
	}
}

// quit removes all that is left of the campaign, or hands it over.
func (t *turn) quit(within time.Duration) {
	if t.Stage == Done {
		return
	}
	t.ends(&t.Lead, Resigned)
	t.Stage = Quitting
	if t.Lead.Phase == Lapsed && !t.cfg.NoHeir {
		t.offer(&t.Lead)
	}
	if t.Place.Remains.Kind != Nothing || t.Place.busy() {
		t.Lead.mayBeOffered()
	}
	t.leave(&t.Place, within)
	t.leave(&t.Lead, within)
}

// answered takes in the outcome of a request.
func (t *turn) answered(a *Answer) {
	l := t.lock(a.Key)
	sent := l.Pending
	if sent.ID != a.ID || sent.Op == NoOp {
		return
	}
	l.Pending = Pending{}
	switch sent.Op {
	case Ask:
		t.fitness(l, a)
	case Create, Displace:
		t.claimed(l, a)
	case Refresh:
		switch l.Phase {
		case Owner, Lapsed:
			t.refreshed(l, a)
		case Waiting:
			t.inherited(l, a)
		}
	case Publish:
		t.published(l, a)
	case Get:
		switch {
		case l.Phase == Owner:
			t.reviewed(l, a)
		case sent.Void:
		case l.Phase == Leaving:
			t.found(l, a)
		case l.Phase == Waiting:
			t.looked(l, a)
		}
	case Vacate:
		t.vacated(l, sent.old.Record(), a)
	case HandOver:
		t.handedOver(l, a)
	case Delete:
		switch l.Phase {
		case Waiting:
			t.cleared(l, sent.old.Record(), a)
		default:
			t.removed(l, sent.old.Record(), a)
		}
	case Join:
		t.joined(l, a)
	case Stay:
		t.stayed(l, a)
	}
}

// fitness takes in what the health check says of a claim.
func (t *turn) fitness(l *Lock, a *Answer) {
	switch {
	case l.Phase != Waiting:
		return
	case a.Verdict == OK:
		l.Fit = true
		return
	}
	l.Next = t.retry(l)
	if t.lineDue(l) <= t.now.Mono {
		l.Line.Next = l.Next
	}
	switch l.Line.Kind {
	case NoPlace:
	case Unsure:
		t.loseLine(l)
	case InLine:
		t.send(l, Delete, l.Line.Record(), kv.Record{})
	}
	t.ends(&t.Place, Unhealthy)
	t.giveUpOnce(l)
}

// Due returns when the campaign wants its next step, on the monotonic clock. It is never
// asked for if that is the largest duration.
func (c *Campaign) Due() time.Duration {
	t := &turn{Campaign: c}
	due := min(c.Lead.due(t), c.Place.due(t), c.healthDue())
	if c.Stage == Leading {
		due = min(due, c.dueToGiveWay())
	}
	return due
}

// InTurn reports whether what is due then is a refresh that comes in its turn, so that it may go
// together with others.
func (c *Campaign) InTurn(due time.Duration) bool { return c.Lead.inTurn(due) || c.Place.inTurn(due) }

func (l *Lock) inTurn(due time.Duration) bool {
	return l.Phase == Owner && !l.busy() && l.Next == due && l.Tries == 0 && due >= l.Turn
}

func (l *Lock) due(t *turn) time.Duration {
	due := l.Expiry()
	if l.busy() {
		return due
	}
	switch l.Phase {
	case Waiting:
		due = min(due, l.Next, l.lookDue(t), t.lineDue(l))
		if l.Key == Lead && l.Remains.Kind == Possible && t.Stage == Standing && !t.Early && t.Place.Phase == Waiting {
			due = min(due, l.Sent.Mono+t.cfg.TTL+1) // when it is forgotten
		}
	case Owner, Lapsed:
		if l.Lull.set() {
			due = min(due, l.Lull.at())
		}
		if l.Remains.Kind != Mine || l.Phase == Lapsed && !t.Drain {
			return due
		}
		due = min(due, l.Next)
		if l.Line.Kind != NoPlace {
			due = min(due, l.Line.Next)
		}
		if l.Phase == Owner && l.Text != textOf(l.Remains.Record()) {
			due = min(due, l.Later)
		}
	case Leaving:
		if due = l.Until; l.Line.Kind != NoPlace || !t.mayReturn(l) {
			due = min(due, l.Next)
		}
	}
	return due
}

// Watched reports whether the campaign wants to see what a key holds.
func (c *Campaign) Watched(k Key) bool {
	l := &c.Lead
	if l.Lull.set() {
		return false
	}
	if k == Place {
		if l = &c.Place; (c.Stage == Leading || c.Stage == Over && c.Drain) && !c.cfg.NoHeir {
			return true
		}
	}
	switch l.Phase {
	case Waiting:
		return !l.Blind && !c.Once
	case Owner:
		return true
	case Lapsed:
		return c.Drain
	}
	return false
}
