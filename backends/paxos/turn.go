package paxoskv

import (
	"context"
	"sync"
)

// turns let one caller per safe write at a time. Members contend with each other; the
// callers of one member need not, and a state has one receipt of each member.
type turns struct {
	mu    sync.Mutex
	taken map[string]*turn
}

// A turn is one safe's.
type turn struct {
	free  chan struct{} // has one element while nobody writes
	users int           // who have it or wait for it
}

// take waits for the safe's turn.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	tn := t.taken[name]
	if tn == nil {
		tn = &turn{free: make(chan struct{}, 1)}
		tn.free <- struct{}{}
		t.taken[name] = tn
	}
	tn.users++
	t.mu.Unlock()
	select {
	case <-tn.free:
		return func() { tn.free <- struct{}{}; t.leave(name, tn) }, nil
	case <-ctx.Done():
		t.leave(name, tn)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) leave(name string, tn *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tn.users--; tn.users == 0 {
		delete(t.taken, name)
	}
}
