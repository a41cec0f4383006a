package kvfault

import (
	"slices"
	"time"
)

// Faults is a choice of operations that are to fail. See [Link.On].
type Faults struct {
	link *Link
	ops  []Op
	n    int
}

// kind says what befalls a call.
type kind int

const (
	pass kind = iota
	dropRequest
	dropReply
	fail
	failReply
	hang
	withhold
)

// A rule is what befalls the calls of one operation.
type rule struct {
	kind    kind
	err     error
	left    int           // how many calls it strikes; 0 means all
	request time.Duration // how long requests are under way
	reply   time.Duration // how long replies are under way
}

// A wire is where the calls of one operation pass.
type wire struct {
	rule    rule
	changed chan struct{} // closed when a test changes the rule
	calls   int
}

// On returns a handle to set the faults of the given operations, or of all if
// none are given. A fault replaces the one that was set for the operation
// before; delays stay beside other faults.
func (l *Link) On(ops ...Op) Faults {
	if len(ops) == 0 {
		ops = []Op{Create, Swap, Refresh, Delete, Get, Watch, Join, Stay, HandOver}
	}
	return Faults{link: l, ops: slices.Clone(ops)}
}

// Next limits the fault to the next n calls of each operation. What struck a
// call or watch keeps its hold on it.
func (f Faults) Next(n int) Faults {
	f.n = n
	return f
}

// DropRequests loses requests: they never reach the store, and their callers
// wait until their contexts end. A watch is cut off: it yields nothing, and once
// healed the state that it missed.
func (f Faults) DropRequests() { f.set(rule{kind: dropRequest}) }

// DropReplies loses replies: requests are carried out, and their callers wait
// until their contexts end. A watch is deaf: what changes meanwhile it never
// yields.
func (f Faults) DropReplies() { f.set(rule{kind: dropReply}) }

// Fail answers with err in place of the store, which is not asked. A watch ends
// with err, one that runs at once.
func (f Faults) Fail(err error) { f.set(rule{kind: fail, err: err}) }

// FailReplies lets the store carry the requests out and then answers with err,
// as a connection does that breaks in between. On a watch it is Fail.
func (f Faults) FailReplies(err error) { f.set(rule{kind: failReply, err: err}) }

// Hang blocks calls, whatever becomes of their contexts, until the operation is
// healed or another fault is set for it. Then they go to the store as if they
// had not noticed that their contexts have ended. A watch hangs likewise, and
// then goes on, or ends if its context has ended.
func (f Faults) Hang() { f.set(rule{kind: hang}) }

// Withhold keeps requests on their way until [Link.Deliver], which is after
// their callers have given up: they wait until their contexts end. On a watch it
// is DropRequests.
func (f Faults) Withhold() { f.set(rule{kind: withhold}) }

// DelayRequests lets requests take d to reach the store. If a caller's context
// ends before, its request is lost. A watch begins late.
func (f Faults) DelayRequests(d time.Duration) {
	f.change(func(r *rule) { r.request = d })
}

// DelayReplies lets replies take d, at most until the caller's context ends;
// the request has been carried out by then. A watch yields each state late.
func (f Faults) DelayReplies(d time.Duration) {
	f.change(func(r *rule) { r.reply = d })
}

// Heal takes all faults of the operations back, delays too. What was lost stays
// lost.
func (f Faults) Heal() {
	f.change(func(r *rule) { *r = rule{} })
}

// Heal takes all faults of all operations back. What was lost stays lost, and
// what is withheld is withheld.
func (l *Link) Heal() { l.On().Heal() }

func (f Faults) set(next rule) {
	f.change(func(r *rule) {
		next.left, next.request, next.reply = f.n, r.request, r.reply
		*r = next
	})
}

// change changes the rule of each operation, and tells those whom it holds.
func (f Faults) change(edit func(*rule)) {
	f.link.mu.Lock()
	defer f.link.mu.Unlock()
	for _, op := range f.ops {
		w := &f.link.wires[op]
		edit(&w.rule)
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// strike returns the rule for a call that begins, and a channel that is closed
// when the operation's rule is changed.
func (l *Link) strike(op Op) (rule, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &l.wires[op]
	struck := w.rule
	if w.rule.left > 0 {
		w.rule.left--
		if w.rule.left == 0 {
			w.rule = rule{request: w.rule.request, reply: w.rule.reply}
		}
	}
	return struck, w.changed
}
