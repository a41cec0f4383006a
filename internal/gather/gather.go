package gather

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// A class is what the refreshes of a round have in common. Refreshes with a short window
// cannot wait for others, so each window has rounds of its own.
type class struct {
	store  kv.Batch
	window time.Duration
}

// The rounds that can be joined. There are none while no refresh is waiting.
var (
	mu   sync.Mutex               //nolint:gochecknoglobals // elections that share a store know nothing of each other
	open = make(map[class]*round) //nolint:gochecknoglobals // see mu
)

// From returns the store as one that refreshes many records at once, or nil if it is none,
// or cannot be told from others.
func From(store kv.Store) kv.Batch {
	b, ok := store.(kv.Batch)
	if !ok || !reflect.ValueOf(b).Comparable() {
		return nil
	}
	return b
}

// A Verdict is the outcome of a refresh.
type Verdict struct {
	Record kv.Record // what [kv.Store.Refresh] would have returned, with Err
	Err    error
	Opened time.Time // when the first one was asked for that it went with
}

// Refresh has the store refresh a record, together with others that are asked for within
// the window. It takes no longer than within, counted from now, plus a window. Tell is called once,
// from another goroutine. The store is one that From has returned.
//
// Cancel calls the refresh off. Then tell is called soon, unless the store has already answered.
// A request that is on its way may still be carried out. Cancel does not block, and may be called
// more than once.
func Refresh(store kv.Batch, window, within time.Duration, held kv.Held, tell func(Verdict)) (cancel func()) {
	p := &part{held: held, tell: tell, deadline: time.Now().Add(within)}
	c := class{store, window}
	mu.Lock()
	defer mu.Unlock()
	r := open[c]
	if r == nil {
		r = begin(c)
		open[c] = r
	}
	r.join(p)
	return func() { r.end(p, context.Canceled) }
}

// end calls a part off, and tells it why. If no other is left, that ends the round: the store is
// not called any more, or the call is cancelled, and the part is told when it has returned.
func (r *round) end(p *part, why error) {
	mu.Lock()
	defer mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case p.told:
		return
	case r.live == 1 && r.called:
		r.stop()
		return
	case r.live == 1:
		delete(open, r.class)
		r.window.Stop()
		r.stop()
	}
	p.told = true
	r.live--
	go p.tell(Verdict{Err: why, Opened: r.opened})
}
