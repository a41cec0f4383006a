package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A link is a candidate's way to the store, as a [kv.Store] with all parts that the schedule
// may give it.
type link struct {
	w    *World
	node *Node
	open atomic.Int64         // calls that have not returned, watches included
	used map[int]*atomic.Bool // which faults at one call have taken place
}

var (
	_ kv.Queue    = (*link)(nil)
	_ kv.HandOver = (*link)(nil)
	_ kv.Vacate   = (*link)(nil)
)

var (
	errDown   = errors.New("sim: connection refused")
	errBroken = errors.New("sim: the watch is broken")
)

// Keys of what the seed decides.
const (
	rollRequest uint64 = iota
	rollReply
	rollLoss
	rollTwice
	rollPush
	rollSilent
	rollLate
	rollLife
	rollToken
	rollJitter
	rollDwell
	rollLag
	rollWork
	rollAsk
)

func newLink(n *Node) *link {
	l := &link{w: n.w, node: n, used: map[int]*atomic.Bool{}}
	for i := range n.w.Faults {
		l.used[i] = &atomic.Bool{}
	}
	return l
}

// An answer is what comes back of a request.
type answer struct {
	rec   kv.Record
	leads bool // the record is the first in line
	err   error
}

// A request is what is asked for, and of which safe.
type request struct {
	op   string
	safe *safe
}

func (l *link) request(name, op string) request {
	return request{op, l.w.store.safe(history.SafeOf(name))}
}

// write asks the store to carry out a write.
func (l *link) write(ctx context.Context, name, op string, do func(*safe, caller) answer) answer {
	by, r := caller{l.node.Name, history.CallOf(ctx), op, l.w.Now()}, l.request(name, op)
	return l.ask(ctx, r, func() answer { return r.safe.write(func() answer { return do(r.safe, by) }) })
}

// ask sends a request and waits for its answer.
func (l *link) ask(ctx context.Context, r request, do func() answer) (a answer) {
	l.open.Add(1)
	defer l.open.Add(-1)
	l.pause(PauseBefore, r.op)
	l.node.StandStill()
	if ctx.Err() != nil && !l.chance(50, rollLate, r) { // else it was on its way already
		return answer{err: context.Cause(ctx)}
	}
	reply := make(chan answer, 1)
	l.send(r, do, reply)
	if leave := l.node.leave.Load(); leave != nil && l.once(Leave, r.op) {
		(*leave)(errAway)
	}
	select {
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	case a = <-reply:
	}
	l.pause(PauseAfter, r.op)
	l.node.StandStill()
	return a
}

// send lets a request arrive once, never, or twice.
func (l *link) send(r request, do func() answer, reply chan<- answer) {
	arrives := l.delay(rollRequest, r)
	if l.lost(CutRequests, rollLoss, r) {
		return
	}
	time.AfterFunc(arrives, func() { l.arrive(r, do, reply) })
	if f, ok := l.suffers(Duplicate); ok && l.chance(f.Chance, rollTwice, r) {
		again := arrives + 1 + l.w.below(f.Size, l.keys(rollTwice, r)...)
		time.AfterFunc(again, func() { do() })
	}
}

// arrive carries a request out and sends the answer back.
func (l *link) arrive(r request, do func() answer, reply chan<- answer) {
	a := do()
	if errors.Is(a.err, errDown) && l.chance(50, rollSilent, r) {
		return
	}
	back := l.delay(rollReply, r)
	if l.lost(CutReplies, rollReply, r) {
		return
	}
	if l.once(LoseReply, r.op) {
		if r.op == history.OpCreate && r.safe.name == "" && a.err == nil {
			l.w.promise(l.node.Name, "the answer to a create was lost", l.w.TTL/2)
		}
		return
	}
	time.AfterFunc(back, func() { reply <- a })
}

// delay returns how long a message takes that is sent now.
func (l *link) delay(key uint64, r request) time.Duration {
	d := l.w.below(l.w.Delay, l.keys(key, r)...)
	if f, ok := l.suffers(Delay); ok {
		d += l.w.below(f.Size, l.keys(key, r, 1)...)
	}
	return d
}

// lost reports whether a message is lost that is sent now.
func (l *link) lost(cut Kind, key uint64, r request) bool {
	if _, ok := l.suffers(cut, Crash); ok {
		return true
	}
	f, ok := l.suffers(Lose)
	return ok && l.chance(f.Chance, key, r)
}

// pause lets the candidate's process stand still, whatever the request's context
// says, if the schedule has a pause for this call.
func (l *link) pause(kind Kind, op string) {
	if size, ok := l.next(kind, op); ok {
		l.w.Note(history.Event{Who: l.node.Name, Kind: history.Stopped, Text: string(kind) + " " + op})
		now := l.w.Now()
		l.node.paused.Store(&Window{now, now + size})
		l.node.StandStill()
		l.w.Note(history.Event{Who: l.node.Name, Kind: history.Woken})
	}
}

// once reports whether the schedule has a fault for this call.
func (l *link) once(kind Kind, op string) bool {
	_, ok := l.next(kind, op)
	return ok
}

func (l *link) next(kind Kind, op string) (size time.Duration, found bool) {
	now := l.w.Now()
	for i, f := range l.w.Faults {
		if f.Kind == kind && f.Op == op && l.w.concerns(i, l.node) &&
			f.From <= now && now < f.To && l.used[i].CompareAndSwap(false, true) {
			return f.Size + time.Duration(l.node.Index), true
		}
	}
	return 0, false
}

func (l *link) suffers(kinds ...Kind) (Fault, bool) {
	return l.w.active(l.node, kinds...)
}

func (l *link) chance(percent int, key uint64, r request) bool {
	return l.w.chance(percent, l.keys(key, r)...)
}

// keys are what a decision about a message depends on: whose it is, what it is,
// and when it is sent.
func (l *link) keys(key uint64, r request, more ...uint64) []uint64 {
	what := uint64(r.safe.index)<<16 | uint64(r.op[0])<<8 | uint64(r.op[len(r.op)-1])
	return append([]uint64{key, uint64(l.node.Index), what, uint64(l.w.Now())}, more...)
}

// Create implements [kv.Store].
func (l *link) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	a := l.write(ctx, name, history.OpCreate, func(f *safe, by caller) answer { return f.create(by, rec) })
	return a.rec, a.err
}

// Swap implements [kv.Store].
func (l *link) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	a := l.write(ctx, name, history.OpSwap, func(f *safe, by caller) answer { return f.swap(by, old, next) })
	return a.rec, a.err
}

// HandOver implements [kv.HandOver].
func (l *link) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	own := l.w.store.safe(history.SafeOf(place))
	a := l.write(ctx, name, history.OpHandOver, func(f *safe, by caller) answer { return f.handOverFrom(by, old, own, heir, note) })
	return a.rec, a.err
}

// Refresh implements [kv.Store].
func (l *link) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	a := l.write(ctx, name, history.OpRefresh, func(f *safe, by caller) answer { return f.refresh(by, rec) })
	return a.rec, a.err
}

// Delete implements [kv.Store].
func (l *link) Delete(ctx context.Context, name string, rec kv.Record) error {
	return l.write(ctx, name, history.OpDelete, func(f *safe, by caller) answer { return f.remove(by, rec) }).err
}

// Vacate implements [kv.Vacate].
func (l *link) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	own := l.w.store.safe(history.SafeOf(place))
	a := l.write(ctx, name, history.OpDelete, func(f *safe, by caller) answer { return f.vacate(by, rec, own) })
	return a.rec, a.err
}

// Join implements [kv.Queue].
func (l *link) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	a := l.write(ctx, name, history.OpJoin, func(f *safe, by caller) answer { return f.join(by, rec) })
	return a.rec, a.err
}

// Stay implements [kv.Queue].
func (l *link) Stay(ctx context.Context, name string, rec kv.Record) (place kv.Record, leads bool, err error) {
	a := l.write(ctx, name, history.OpStay, func(f *safe, by caller) answer { return f.stay(by, rec) })
	return a.rec, a.leads, a.err
}

// Get implements [kv.Store].
func (l *link) Get(ctx context.Context, name string) (kv.Record, error) {
	r := l.request(name, history.OpGet)
	a := l.ask(ctx, r, func() answer {
		rec, err := r.safe.get()
		return answer{rec: rec, err: err}
	})
	return a.rec, a.err
}

// Lifetime implements [kv.Store].
func (l *link) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	granted := l.w.Store.grant(ttl)
	return kv.Lifetime{Min: granted, Max: granted + l.w.Store.Lazy, Queue: l.w.Store.Lines}, nil
}
