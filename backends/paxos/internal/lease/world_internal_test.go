package lease

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// flaws are rules that a world leaves out, by changing messages on their way to a
// part or lying to it about the time. The parts themselves know no flaws.
type flaws struct {
	lateTimer        bool          // rule 1: an attempt's time, and an owner's, count from the proposal
	lateLife         bool          // as in the paper: a lease's life at an acceptor counts from its acceptance
	overwriteLive    bool          // rule 2: a higher ballot replaces anybody's live lease
	nodeOwner        bool          // rule 3: a member's lease is that of its every incarnation
	staleOwnerOpen   bool          // rule 4: a lease of one's own counts as open
	scalarCounting   bool          // rule 5: answers are counted, not who gave them
	looseRelease     bool          // releases come as messages of their own, in any order…
	ownerOnlyRelease bool          // rule 6: …and match the owner alone
	unbound          bool          // a proposal reaches acceptors that have not promised it
	faithless        bool          // a proposal is accepted although a higher ballot was promised since
	quarantine       time.Duration // rule 7, if not zero
	anyRefusal       bool          // rule 12: whoever refuses a ballot now counts as never to hold it
	voidFar          bool          // rule 12: whoever finds a counter too high for now counts as never to promise it
	anyEnd           bool          // rule 12: an attempt is retracted whenever it is given up
	forgetful        bool          // rule 12: an acceptor that retracts empties the safe
	unspent          bool          // rule 12: what was refused or retracted may be accepted when it comes again
	fastAcceptors    int           // rule 8: by how many thousandths their clocks run fast
}

// A world is acceptors, candidates and the messages between them, in one time.
type world struct {
	terms      Terms
	flaws      flaws
	durable    bool // promises are on disk
	now        time.Duration
	acceptors  []*Acceptor
	candidates []candidate
	pool       []flight   // everything on its way; nothing leaves it by arriving
	restarts   []int      // of acceptors
	ever       [][]Ballot // what each acceptor has ever accepted
	retracted  []Ballot   // what some acceptor does not hold any more for that
	faults     int        // that may still happen, in an exploration
	token      uint64     // the highest that anybody was told
	trouble    string
}

// A candidate is a member's proposer, and what its owner believes.
type candidate struct {
	p       Proposer
	number  uint64
	counter uint64
	op      *Operation
	kind    Kind
	began   time.Duration
	timer   time.Duration // what a late timer counts from
	mine    State         // the record that it owns, if any
	until   time.Duration // how long it trusts that
	ops     int
	crashes int
}

// A flight is a message on its way. An acceptor is known by its index, a candidate by
// its index after them.
type flight struct {
	from, to int
	m        Message
}

const (
	ttl   = 10
	round = 5
)

func newWorld(f flaws) *world {
	w := &world{
		terms: Terms{Cluster: "c", Members: []MemberID{"A", "B", "C"}, MaxTTL: ttl, Round: round},
		flaws: f,
	}
	return w.fill(2)
}

func (w *world) fill(candidates int) *world {
	for range w.terms.Members {
		w.acceptors = append(w.acceptors, NewAcceptor(w.terms, 1, 0, 0))
	}
	w.restarts, w.ever = make([]int, len(w.acceptors)), make([][]Ballot, len(w.acceptors))
	for i := range candidates {
		id := MemberID([]string{"p", "q", "r", "s"}[i])
		w.candidates = append(w.candidates, candidate{p: Proposer{Terms: w.terms, Self: id, Incarnation: 1}})
	}
	return w
}

func (w *world) clone() *world {
	v := *w
	v.acceptors = slices.Clone(w.acceptors)
	for i, a := range w.acceptors {
		b := *a
		b.cells = maps.Clone(a.cells)
		v.acceptors[i] = &b
	}
	v.candidates = slices.Clone(w.candidates)
	for i, c := range w.candidates {
		if c.op != nil {
			op := *c.op
			op.voices, op.mine = slices.Clone(op.voices), slices.Clone(op.mine)
			v.candidates[i].op = &op
		}
	}
	v.pool, v.restarts = slices.Clone(w.pool), slices.Clone(w.restarts)
	v.ever, v.retracted = slices.Clone(w.ever), slices.Clone(w.retracted)
	return &v
}

// begin has a candidate start an operation. Questions are left out: they change
// nothing.
func (w *world) begin(i int, kind Kind) {
	c := &w.candidates[i]
	change := Change{Kind: kind, TTL: w.terms.MaxTTL, Signature: fmt.Sprint(c.p.Self, c.p.Incarnation, ".", c.number+1)}
	if kind != Create && kind != Read {
		change.OldSignature, change.OldToken, change.OldRevision = c.mine.Signature, c.mine.Tenure.Counter, c.mine.Revision
	}
	if kind == Delete || kind == HandOver {
		c.mine, c.until = State{}, 0 // stopped first
	}
	c.number++
	c.ops++
	c.counter++
	c.kind, c.began, c.timer = kind, w.now, w.now
	c.op = c.p.NewOperation("s", c.number, change)
	w.take(i, c.op.prepare(w.now, c.counter))
}

// take does what a candidate's operation wants done.
func (w *world) take(i int, out Output) {
	c := &w.candidates[i]
	c.counter = max(c.counter, c.op.Seen())
	for _, e := range out.Send {
		if _, ok := e.Message.(Commit); !ok {
			to := slices.Index(w.terms.Members, e.To)
			w.post(flight{len(w.acceptors) + i, to, e.Message})
		}
	}
	if out.Result.Verdict != None {
		w.conclude(c, out.Result)
		c.op = nil
		w.prune()
	}
}

// conclude is what a candidate makes of a result: it trusts its record from the start
// of the call that wrote it.
func (w *world) conclude(c *candidate, res Result) {
	start := c.began
	if w.flaws.lateTimer {
		start = c.timer
	}
	switch {
	case res.Verdict == Written && c.kind == Create:
		c.mine, c.until = res.State, start+w.terms.MaxTTL
		if !w.owns(*c) {
			break // it learned too late that it was elected once
		}
		if w.durable && res.State.Tenure.Counter <= w.token {
			w.trouble = fmt.Sprintf("token %d after %d", res.State.Tenure.Counter, w.token)
		}
		w.token = max(w.token, res.State.Tenure.Counter)
	case res.Verdict == Written && (c.kind == Refresh || c.kind == Publish):
		c.mine, c.until = res.State, max(c.until, start+w.terms.MaxTTL)
	case res.Verdict == Stale && c.kind != Delete:
		c.mine, c.until = State{}, 0
	}
	w.judge()
}

// judge looks for two owners.
func (w *world) judge() {
	var owners []string
	for _, c := range w.candidates {
		if w.owns(c) {
			owners = append(owners, fmt.Sprintf("%s by %v until %d", c.p.Self, c.mine.Tenure, c.until))
		}
	}
	if len(owners) > 1 && w.trouble == "" {
		w.trouble = fmt.Sprintf("two owners at %d: %s", w.now, strings.Join(owners, ", "))
	}
}

func (w *world) owns(c candidate) bool { return !c.mine.Vacant() && w.now < c.until }

// post adds a message to those on their way. An equal one is there for good already.
func (w *world) post(f flight) {
	for _, g := range w.pool {
		if g.from == f.from && g.to == f.to && reflect.DeepEqual(g.m, f.m) {
			return
		}
	}
	w.pool = append(w.pool, f)
}

// prune drops messages that change nothing any more, whenever they arrive: answers for
// attempts that are over, proposals of such attempts that their acceptor refuses for good
// or has heard, their prepares, which could only keep others from theirs, and what
// retracts nothing.
func (w *world) prune() {
	w.pool = slices.DeleteFunc(w.pool, func(f flight) bool {
		if f.to >= len(w.acceptors) {
			return w.attempt(f.to, ballotOf(f.m)) == nil
		}
		a, op := w.acceptors[f.to], w.attempt(f.from, ballotOf(f.m))
		c := a.at("s")
		switch m := f.m.(type) {
		case Prepare:
			return op == nil || op.voices[f.to].refused && m.Ballot.Counter <= c.promised.Counter
		case Retract:
			return !c.knows(m.Ballot)
		case Propose:
			if op != nil && !op.voices[f.to].refused {
				return false // a refusal is news
			}
			if w.flaws.unbound || w.flaws.looseRelease || w.flaws.faithless {
				return false
			}
			return c.accepted == m.Ballot || m.Acceptor != a.incarnation || m.Ballot != c.promised || c.spent
		}
		return false
	})
}

// knows reports whether it would change the cell to retract a ballot.
func (c cell) knows(b Ballot) bool {
	return c.promised == b && !c.spent || c.accepted == b && len(c.earlier) > 0 ||
		slices.ContainsFunc(c.earlier, func(e held) bool { return e.accepted == b })
}

// attempt returns a candidate's operation if its present attempt has that ballot.
func (w *world) attempt(end int, b Ballot) *Operation {
	op := w.candidates[end-len(w.acceptors)].op
	if op == nil || op.phase >= resting || op.ballot != b {
		return nil
	}
	return op
}

// awaits reports whether a proposal under a ballot may still come.
func (w *world) awaits(b Ballot) bool {
	for _, c := range w.candidates {
		if c.op != nil && c.op.phase < resting && c.op.ballot == b {
			return true
		}
	}
	return slices.ContainsFunc(w.pool, func(f flight) bool {
		m, ok := f.m.(Propose)
		return ok && m.Ballot == b
	})
}

func ballotOf(m Message) Ballot {
	switch m := m.(type) {
	case Prepare:
		return m.Ballot
	case Promise:
		return m.Ballot
	case Propose:
		return m.Ballot
	case Accept:
		return m.Ballot
	case Refusal:
		return m.Ballot
	case Retract:
		return m.Ballot
	}
	return Ballot{}
}

// ask has a request arrive, and returns the answer, if any, which is not on its way
// yet.
func (w *world) ask(f flight) (flight, bool) {
	a := w.acceptors[f.to]
	now := w.now + w.now*time.Duration(w.flaws.fastAcceptors)/1000
	m := f.m
	if p, ok := m.(Propose); ok {
		m = w.tamper(a, now, p)
	}
	before := a.at("s")
	answer := a.Receive(now, m)
	w.distort(a, m)
	w.watch(f.to, before, m)
	if answer == nil {
		return flight{}, false
	}
	return flight{f.to, f.from, answer}, true
}

// watch looks for a proposal that a majority has accepted, at whatever time, and that
// one of them does not hold any more because it was retracted.
func (w *world) watch(i int, before cell, m Message) {
	after, b := w.acceptors[i].at("s"), ballotOf(m)
	if _, ok := m.(Propose); ok && after.accepted == b && before.accepted != b && !slices.Contains(w.ever[i], b) {
		w.ever[i] = append(slices.Clone(w.ever[i]), b)
	}
	if _, ok := m.(Retract); ok && slices.Contains(w.ever[i], b) && before.knows(b) && !slices.Contains(w.retracted, b) {
		w.retracted = append(slices.Clone(w.retracted), b)
	}
	for _, b := range w.retracted {
		n := 0
		for _, all := range w.ever {
			if slices.Contains(all, b) {
				n++
			}
		}
		if n >= w.terms.Majority() && w.trouble == "" {
			w.trouble = fmt.Sprintf("%v was retracted, and decided on", b)
		}
	}
}

// distort has an acceptor do what one of a protocol with flaws does on top.
func (w *world) distort(a *Acceptor, m Message) {
	c, ok := a.cells["s"]
	if _, retracted := m.(Retract); w.flaws.forgetful && ok && retracted {
		c.held, c.earlier = held{}, nil
	}
	if w.flaws.unspent {
		c.spent = false
	}
	if ok {
		a.cells["s"] = c
	}
}

// tamper makes a proposal one of a protocol with flaws.
func (w *world) tamper(a *Acceptor, now time.Duration, p Propose) Propose {
	c := a.at("s")
	if now < a.opens {
		return p
	}
	if w.flaws.looseRelease && p.State.Vacant() {
		if !c.live(now) || (c.accepted != p.Replaces.Ballot || c.state.Tenure != p.Replaces.Tenure) && !w.flaws.ownerOnlyRelease ||
			c.state.Tenure.Proposer != p.Replaces.Tenure.Proposer || c.state.Tenure.Incarnation != p.Replaces.Tenure.Incarnation {
			return p
		}
		c.expires = now
		a.cells["s"] = c
		return p
	}
	if w.flaws.unbound {
		p.Acceptor = a.incarnation
		if p.Ballot.Counter > c.promised.Counter {
			a.Receive(now, Prepare{Safe: p.Safe, Ballot: p.Ballot})
		}
	}
	if w.flaws.faithless {
		c.promised, c.since = p.Ballot, now
		a.cells["s"] = c
	}
	if w.flaws.lateLife && !p.State.Vacant() {
		p.Life += now - a.at("s").since
	}
	mine := c.state.Tenure.Proposer == p.Replaces.Tenure.Proposer
	if c.live(now) && (w.flaws.overwriteLive || w.flaws.nodeOwner && mine) {
		p.Replaces = Lease{Tenure: c.state.Tenure, Ballot: c.accepted}
	}
	return p
}

// tell has an answer arrive.
func (w *world) tell(f flight) {
	i := f.to - len(w.acceptors)
	c := &w.candidates[i]
	if c.op == nil || c.op.phase >= resting || ballotOf(f.m) != c.op.ballot {
		return
	}
	now, m, from := w.now, f.m, w.terms.Members[f.from]
	if w.flaws.lateTimer {
		now = c.op.sent // it never finds its attempt too old
	}
	if p, ok := m.(Promise); ok && w.flaws.staleOwnerOpen && p.Report.State.Tenure.Proposer == c.p.Self {
		p.Report.Expired, p.Report.Life = true, 0
		m = p
	}
	if r, ok := m.(Refusal); ok && w.flaws.anyRefusal {
		r.Void = true
		m = r
	}
	if r, ok := m.(Refusal); ok && w.flaws.voidFar && r.Promised < r.Ballot.Counter && c.op.phase == preparing {
		r.Void = true
		m = r
	}
	if w.flaws.scalarCounting {
		from = w.uncounted(c.op, m, from)
	}
	before, ballot := c.op.phase, c.op.ballot
	out := c.op.Receive(now, from, m)
	w.giveUp(i, before, ballot)
	if before == preparing && c.op.phase == proposing {
		c.timer = w.now
	}
	w.take(i, out)
	if c.op != nil && c.op.phase == resting {
		w.prune()
	}
}

// uncounted is who gave an answer, or if it was counted already, the first whose answer
// of this kind was not.
func (w *world) uncounted(op *Operation, m Message, from MemberID) MemberID {
	counted := func(v voice) bool {
		_, isAccept := m.(Accept)
		return v.promised && !isAccept || v.accepted
	}
	first := from
	for _, v := range op.voices {
		if !counted(v) && (v.member == from || first == from) {
			first = v.member
		}
		if !counted(v) && v.member == from {
			return from
		}
	}
	return first
}

// wake starts a candidate's next attempt, or ends the present one if its time is over.
func (w *world) wake(i int) {
	c := &w.candidates[i]
	if c.op == nil {
		return
	}
	c.counter++
	before, ballot := c.op.phase, c.op.ballot
	out := c.op.Wake(w.now, c.counter)
	w.giveUp(i, before, ballot)
	w.take(i, out)
	w.prune()
}

// giveUp retracts what a candidate's attempt has proposed if it has just come to its
// end, in a protocol with that flaw.
func (w *world) giveUp(i int, before phase, b Ballot) {
	if !w.flaws.anyEnd || before != proposing || w.candidates[i].op.phase != resting {
		return
	}
	for to := range w.acceptors {
		w.post(flight{len(w.acceptors) + i, to, Retract{Safe: "s", Ballot: b}})
	}
}

// abandon has a candidate give its operation up, as when its context ends.
func (w *world) abandon(i int) {
	w.candidates[i].op = nil
	w.prune()
}

func (w *world) tick(d time.Duration) {
	w.now += d
	w.judge()
}

// restart has an acceptor lose everything but its promises' counter, if that is on
// disk.
func (w *world) restart(i int) {
	w.restarts[i]++
	q := w.terms.Quarantine()
	if w.flaws.quarantine != 0 {
		q = w.flaws.quarantine
	}
	floor := uint64(0)
	if w.durable {
		floor = w.acceptors[i].at("s").promised.Counter
	}
	w.acceptors[i] = NewAcceptor(w.terms, w.acceptors[i].incarnation+1, w.now+q, floor)
}

// crash has a candidate's process die and start anew. It remembers nothing.
func (w *world) crash(i int) {
	c := &w.candidates[i]
	*c = candidate{p: c.p, ops: c.ops, crashes: c.crashes + 1}
	c.p.Incarnation++
	w.prune()
}
