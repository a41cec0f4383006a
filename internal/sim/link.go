package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A link is a candidate's way to the store, as a [kv.Store].
type link struct {
	w    *World
	node *Node
	open atomic.Int64         // calls that have not returned, watches included
	used map[int]*atomic.Bool // which faults at one call have taken place
}

var _ kv.Store = (*link)(nil)

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

// The operations.
const (
	opCreate  = "create"
	opSwap    = "swap"
	opRefresh = "refresh"
	opDelete  = "delete"
	opGet     = "get"
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
	rec kv.Record
	err error
}

// ask sends a request and waits for its answer.
func (l *link) ask(ctx context.Context, op string, do func() (kv.Record, error)) (kv.Record, error) {
	l.open.Add(1)
	defer l.open.Add(-1)
	l.pause(PauseBefore, op)
	l.node.StandStill()
	if ctx.Err() != nil && !l.chance(50, rollLate, op) { // else it was on its way already
		return kv.Record{}, context.Cause(ctx)
	}
	reply := make(chan answer, 1)
	l.send(op, do, reply)
	var a answer
	select {
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	case a = <-reply:
	}
	l.pause(PauseAfter, op)
	l.node.StandStill()
	return a.rec, a.err
}

// send lets a request arrive once, never, or twice.
func (l *link) send(op string, do func() (kv.Record, error), reply chan<- answer) {
	arrives := l.delay(rollRequest, op)
	if l.lost(CutRequests, rollLoss, op) {
		return
	}
	time.AfterFunc(arrives, func() { l.arrive(op, do, reply) })
	if f, ok := l.suffers(Duplicate); ok && l.chance(f.Chance, rollTwice, op) {
		again := arrives + 1 + l.w.below(f.Size, l.keys(rollTwice, op)...)
		time.AfterFunc(again, func() { _, _ = do() })
	}
}

// arrive carries a request out and sends the answer back.
func (l *link) arrive(op string, do func() (kv.Record, error), reply chan<- answer) {
	rec, err := do()
	if errors.Is(err, errDown) && l.chance(50, rollSilent, op) {
		return
	}
	back := l.delay(rollReply, op)
	if l.lost(CutReplies, rollReply, op) {
		return
	}
	if l.once(LoseReply, op) {
		if op == opCreate && err == nil {
			l.w.promise(l.node.Name, "the answer to a create was lost", l.w.TTL/2)
		}
		return
	}
	time.AfterFunc(back, func() { reply <- answer{rec, err} })
}

// delay returns how long a message takes that is sent now.
func (l *link) delay(key uint64, op string) time.Duration {
	d := l.w.below(l.w.Delay, l.keys(key, op)...)
	if f, ok := l.suffers(Delay); ok {
		d += l.w.below(f.Size, l.keys(key, op, 1)...)
	}
	return d
}

// lost reports whether a message is lost that is sent now.
func (l *link) lost(cut Kind, key uint64, op string) bool {
	if _, ok := l.suffers(cut, Crash); ok {
		return true
	}
	f, ok := l.suffers(Lose)
	return ok && l.chance(f.Chance, key, op)
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

func (l *link) chance(percent int, key uint64, op string) bool {
	return l.w.chance(percent, l.keys(key, op)...)
}

// keys are what a decision about a message depends on: whose it is, what it is,
// and when it is sent.
func (l *link) keys(key uint64, op string, more ...uint64) []uint64 {
	what := uint64(op[0])<<8 | uint64(op[len(op)-1])
	return append([]uint64{key, uint64(l.node.Index), what, uint64(l.w.Now())}, more...)
}

// Create implements [kv.Store].
func (l *link) Create(ctx context.Context, _ string, rec kv.Record) (kv.Record, error) {
	s := l.w.store
	return l.ask(ctx, opCreate, func() (kv.Record, error) {
		return s.write(l.node.Name, history.CallOf(ctx), opCreate, func(old kv.Record) (kv.Record, error) {
			if old != (kv.Record{}) {
				return kv.Record{}, kv.ErrHeld
			}
			n := s.next()
			return kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: l.w.Store.grant(rec.TTL), Token: n, Revision: n}, nil
		})
	})
}

// Swap implements [kv.Store].
func (l *link) Swap(ctx context.Context, _ string, old, next kv.Record) (kv.Record, error) {
	s := l.w.store
	return l.ask(ctx, opSwap, func() (kv.Record, error) {
		return s.write(l.node.Name, history.CallOf(ctx), opSwap, func(rec kv.Record) (kv.Record, error) {
			if !same(rec, old) || rec.Revision != old.Revision {
				return kv.Record{}, kv.ErrStale
			}
			rec.Value, rec.Revision = next.Value, s.next()
			if next.Signature != old.Signature {
				rec.Signature, rec.Token, rec.TTL = next.Signature, rec.Revision, l.w.Store.grant(next.TTL)
				rec.Foreign, rec.Permanent = false, false
			}
			return rec, nil
		})
	})
}

// Refresh implements [kv.Store].
func (l *link) Refresh(ctx context.Context, _ string, rec kv.Record) (kv.Record, error) {
	return l.ask(ctx, opRefresh, func() (kv.Record, error) {
		return l.w.store.write(l.node.Name, history.CallOf(ctx), opRefresh, func(old kv.Record) (kv.Record, error) {
			if !old.Owns(rec) {
				return kv.Record{}, kv.ErrStale
			}
			return old, nil
		})
	})
}

// Delete implements [kv.Store].
func (l *link) Delete(ctx context.Context, _ string, rec kv.Record) error {
	_, err := l.ask(ctx, opDelete, func() (kv.Record, error) {
		return l.w.store.write(l.node.Name, history.CallOf(ctx), opDelete, func(old kv.Record) (kv.Record, error) {
			if !same(old, rec) {
				return kv.Record{}, kv.ErrStale
			}
			return kv.Record{}, nil
		})
	})
	return err
}

// same reports whether the safe holds the record that a candidate means. Adapters
// refuse to touch what is foreign; this store does what it is asked, so that it
// shows who asks.
func same(rec, meant kv.Record) bool {
	return rec.Owns(meant) || rec.Foreign && rec == meant
}

// Get implements [kv.Store].
func (l *link) Get(ctx context.Context, _ string) (kv.Record, error) {
	return l.ask(ctx, opGet, l.w.store.get)
}

// Lifetime implements [kv.Store].
func (l *link) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	granted := l.w.Store.grant(ttl)
	return kv.Lifetime{Min: granted, Max: granted + l.w.Store.Lazy}, nil
}
