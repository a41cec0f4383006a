package lease

import (
	"slices"
	"time"
)

// MaxRescues is how often a record may be completed by others before its owner
// writes it again. Each time may lengthen its life by as long as messages take.
const MaxRescues = 3

// maxQuestions is how often an operation asks before it prepares.
const maxQuestions = 4

// A Proposer is what the operations of one start of a member have in common.
type Proposer struct {
	Terms       Terms
	Self        MemberID
	Incarnation uint64
}

// An Operation carries out one [Change] of one safe. It is fed with what arrives
// and with the passing of time, and says what to send and when to wake it.
//
// Its times are readings of a clock that may run fast but must not run slow.
type Operation struct {
	p      Proposer
	safe   string
	number uint64
	change Change

	phase  phase
	stage  phase         // how far the attempt came, also when it rests
	note   string        // why the attempt has ended, if it was not for refusals or silence
	before attempt       // the last one to which anybody has said anything
	ballot Ballot        // of the attempt, or of the question
	sent   time.Duration // when the attempt began: everything it learned counts from here
	again  time.Duration // when to send once more what was not answered
	tries  int           // attempts that failed one after the other
	asked  int           // questions so far
	// listened is set if the attempt has waited for more promises than it needs.
	listened bool
	hurried  bool   // since the last rest, an attempt went on at once when it was refused
	after    uint64 // the highest counter seen
	known    uint64 // the highest that a majority has passed

	voices   []voice
	proposed Propose       // in the proposing phase
	verdict  Verdict       // what it is to be when the proposal is accepted
	done     State         // likewise
	mine     []written     // what attempts have proposed of their own
	first    time.Duration // when the first of them did
	next     phase         // after the rest
}

// written is what an attempt proposed of its own.
type written struct {
	ballot Ballot
	state  State
}

// A voice is what one member has said in an attempt. Each member has one (rule 5).
type voice struct {
	member   MemberID
	promised bool // or answered
	accepted bool
	refused  bool
	void     bool // it does not hold what was proposed, and never will
	refusal  Refusal
	passed   uint64 // the highest counter that it has promised, as it says
	acceptor uint64
	report   Report
}

type phase uint8

const (
	asking phase = iota
	preparing
	proposing
	resting
	over
)

// An Output is what an operation wants done.
type Output struct {
	Send []Envelope
	// Wake is when the operation wants to be woken if nothing comes before.
	Wake time.Duration
	// Result is set when the operation is over; its verdict is None before.
	Result Result
}

// An Envelope is a message and where it goes.
type Envelope struct {
	To      MemberID
	Message Message
}

// A Result is how an operation ended.
type Result struct {
	Verdict Verdict
	// State is the record that was written or found; after a delete it is vacant.
	State State
	// Sight is what the safe held at last. That is something else than State if
	// others have changed it since.
	Sight Sight
}

// A Sight is what a safe was seen to hold, decided on by a majority.
type Sight struct {
	Ballot Ballot
	State  State
	// Live is set if the state was a record whose life was not over; Life is how
	// long that may go on, at most.
	Live bool
	Life time.Duration
}

// NewOperation returns an operation of its proposer, under a number that it uses
// once. Begin it with Begin.
func (p Proposer) NewOperation(safe string, number uint64, change Change) *Operation {
	return &Operation{p: p, safe: safe, number: number, change: change}
}

// Begin starts the operation. The counter is larger than any that the member has
// used or seen; it is given back with each call that may start an attempt, so that
// no two operations of a member use the same.
//
// Reads and creates ask first: what they mostly find needs no change, and a question
// disturbs nobody's writes.
func (o *Operation) Begin(now time.Duration, counter uint64) Output {
	if o.change.Kind == Read || o.change.Kind == Create {
		return o.ask(now, counter)
	}
	return o.prepare(now, counter)
}

// Ballot returns the ballot of the present attempt, or question.
func (o *Operation) Ballot() Ballot { return o.ballot }

// Seen returns the highest counter that the operation has heard of.
func (o *Operation) Seen() uint64 { return o.after }

// Known returns the highest counter that a majority has passed, as far as they have said.
func (o *Operation) Known() uint64 { return o.known }

// passed notes which counter a member has passed.
func (o *Operation) passed(v *voice, counter uint64) {
	v.passed = max(v.passed, counter)
	o.after = max(o.after, counter)
	all := []uint64{}
	for _, v := range o.voices {
		all = append(all, v.passed)
	}
	slices.Sort(all)
	o.known = max(o.known, all[len(all)-o.p.Terms.Majority()])
}

func (o *Operation) ask(now time.Duration, counter uint64) Output {
	o.begin(asking, now, counter)
	o.asked++
	return o.toSilent(now)
}

func (o *Operation) prepare(now time.Duration, counter uint64) Output {
	o.begin(preparing, now, counter)
	return o.toSilent(now)
}

func (o *Operation) begin(ph phase, now time.Duration, counter uint64) {
	if spoken(o.voices) {
		o.before = attempt{o.voices, o.stage, o.ballot, o.note}
	}
	o.note = ""
	o.phase, o.stage, o.sent, o.listened = ph, ph, now, false
	o.ballot = Ballot{Counter: counter, Proposer: o.p.Self, Incarnation: o.p.Incarnation}
	o.after = max(o.after, counter)
	o.voices = make([]voice, len(o.p.Terms.Members))
	for i, id := range o.p.Terms.Members {
		o.voices[i].member = id
	}
}

// toSilent sends the phase's message to those who have not said anything to it.
func (o *Operation) toSilent(now time.Duration) Output {
	var out Output
	for _, v := range o.voices {
		switch {
		case v.refused || v.accepted:
		case o.phase == asking && !v.promised:
			out.send(v.member, Query{Safe: o.safe, Asker: o.ballot})
		case o.phase != asking && !v.promised:
			out.send(v.member, Prepare{Safe: o.safe, Ballot: o.ballot})
		case o.phase == proposing:
			out.send(v.member, o.proposal(v))
		}
	}
	o.again = now + o.p.Terms.Round/2
	out.Wake = min(o.again, o.sent+o.p.Terms.Round)
	return out
}

func (o *Output) send(to MemberID, m Message) {
	o.Send = append(o.Send, Envelope{To: to, Message: m})
}

func (o *Operation) proposal(v voice) Propose {
	m := o.proposed
	m.Acceptor = v.acceptor
	return m
}

// Receive takes an answer to the operation's messages.
func (o *Operation) Receive(now time.Duration, from MemberID, m Message) Output {
	i := slices.IndexFunc(o.voices, func(v voice) bool { return v.member == from })
	if i < 0 || o.phase >= resting {
		return o.waiting()
	}
	v := &o.voices[i]
	if now >= o.sent+o.p.Terms.Round {
		// Rule 1: what an attempt learns counts from its prepare, and for no longer
		// than its round; nobody has to have woken it for that.
		return o.rest(now)
	}
	switch m := m.(type) {
	case Answer:
		if o.phase == asking && m.Asker == o.ballot && !v.promised {
			v.promised, v.report = true, m.Report
			o.passed(v, m.Promised)
			return o.consider(now)
		}
	case Promise:
		if o.phase != asking && m.Ballot == o.ballot && !v.promised {
			return o.promise(now, v, m)
		}
	case Accept:
		if o.phase == proposing && m.Ballot == o.ballot {
			v.accepted = true
			return o.count(now)
		}
	case Refusal:
		if o.phase != asking && m.Ballot == o.ballot {
			v.refused, v.void, v.refusal = true, v.void || m.Void, m
			o.passed(v, m.Promised)
			return o.count(now)
		}
	}
	return o.waiting()
}

func (o *Operation) promise(now time.Duration, v *voice, m Promise) Output {
	v.promised, v.acceptor, v.report = true, m.Acceptor, m.Report
	o.passed(v, o.ballot.Counter)
	o.after = max(o.after, m.Report.Accepted.Counter)
	if o.phase == preparing {
		return o.consider(now)
	}
	out := o.waiting()
	out.send(v.member, o.proposal(*v))
	return out
}

// reports returns those of everybody who has promised, or answered.
func (o *Operation) reports() []Report {
	var all []Report
	for _, v := range o.voices {
		if v.promised {
			all = append(all, v.report)
		}
	}
	return all
}

// consider looks at what has been said so far, and goes on if that is enough.
func (o *Operation) consider(now time.Duration) Output {
	reports := o.reports()
	if len(reports) < o.p.Terms.Majority() {
		return o.waiting()
	}
	v := look(reports, o.p.Terms.Majority())
	o.after = max(o.after, v.ballot.Counter)
	if o.phase == preparing {
		return o.decide(now, v)
	}
	if v.over() { // which has to be written down, or made room for
		return o.pause(now, 0, preparing)
	}
	if !v.settled {
		o.note = noteDiffer
		if len(reports) == len(o.voices) {
			return o.rest(now)
		}
		// The others may settle it, if they are there at all.
		o.again = min(o.again, now+max(now-o.sent, time.Millisecond))
		return o.waiting()
	}
	if _, refused := o.change.apply(v, o.ballot); refused != None {
		return o.end(refused, v.found(), sight(v))
	}
	return o.pause(now, 0, preparing)
}

// waiting says when to wake the operation next.
func (o *Operation) waiting() Output {
	switch o.phase {
	case over:
		return Output{}
	case resting:
		return Output{Wake: o.again}
	}
	return Output{Wake: min(o.again, o.sent+o.p.Terms.Round)}
}
