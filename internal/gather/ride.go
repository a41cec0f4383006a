package gather

import (
	"context"
	"time"

	"github.com/electkv/election/kv"
)

// A rider is a refresh that is in no hurry: it goes with the next round that is called for
// others.
type rider struct {
	held     kv.Held
	tell     func(Verdict)
	earliest time.Time
	within   time.Duration
	late     *time.Timer // opens a round for it
	over     bool        // it was taken along, or called off
	cancel   func()      // calls it off, once it was taken along
}

// The riders that wait, by store. There are none while no round is waited for.
var riders = make(map[kv.Batch]map[*rider]struct{}) //nolint:gochecknoglobals // guarded by mu

// Ride has the store refresh a record with the first round of whatever window that is called
// for others after a time: behind them, and within the time limit of that round or its own, from
// then on, whichever is shorter. If none is called by latest, it opens a round as [Refresh] does. Otherwise it is like Refresh: tell is
// called once, also after cancel.
func Ride(store kv.Batch, window, after, latest, within time.Duration, held kv.Held, tell func(Verdict)) (cancel func()) {
	r := &rider{held: held, tell: tell, earliest: time.Now().Add(after), within: within}
	mu.Lock()
	defer mu.Unlock()
	if riders[store] == nil {
		riders[store] = make(map[*rider]struct{})
	}
	riders[store][r] = struct{}{}
	r.late = time.AfterFunc(latest, func() {
		mu.Lock()
		late := r.leave(store)
		mu.Unlock()
		if !late {
			return
		}
		cancel := Refresh(store, window, within, held, tell)
		mu.Lock()
		gone := r.cancel != nil // it was called off meanwhile
		r.cancel = cancel
		mu.Unlock()
		if gone {
			cancel()
		}
	})
	return func() { r.end(store) }
}

// leave takes a rider from those that wait, and reports whether it was one. It is called with mu
// held.
func (r *rider) leave(store kv.Batch) bool {
	if r.over {
		return false
	}
	r.over = true
	r.late.Stop()
	if delete(riders[store], r); len(riders[store]) == 0 {
		delete(riders, store)
	}
	return true
}

// end calls a rider off.
func (r *rider) end(store kv.Batch) {
	mu.Lock()
	waited, cancel := r.leave(store), r.cancel
	if !waited && cancel == nil {
		r.cancel = func() {} // its round is about to be opened
	}
	mu.Unlock()
	switch {
	case waited:
		go r.tell(Verdict{Err: context.Canceled, Opened: time.Now()})
	case cancel != nil:
		cancel()
	}
}

// board takes along the riders that wait for the round, which is about to be called for others.
// It is called with both mutexes held.
func (r *round) board(now time.Time) {
	for one := range riders[r.class.store] {
		if one.earliest.After(now) {
			continue
		}
		one.leave(r.class.store)
		p := &part{held: one.held, tell: one.tell, deadline: now.Add(one.within)}
		if p.deadline.After(r.deadline) {
			p.deadline = r.deadline
		}
		one.cancel = func() { r.end(p, context.Canceled) }
		r.parts = append(r.parts, p)
		r.live++
	}
}
