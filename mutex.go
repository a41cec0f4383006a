package election

import (
	"context"
	"sync"
)

// A mutex is one whose lock heeds a context. It has no channel until it is first used: most
// terms never use theirs.
type mutex struct {
	held chan struct{} // holds one value while the mutex is locked
}

// lock waits for the mutex, or returns why ctx has ended. It takes a mutex that is free also
// if ctx has ended. Under mu the channel is made, once.
func (m *mutex) lock(ctx context.Context, mu *sync.Mutex) error {
	mu.Lock()
	if m.held == nil {
		m.held = make(chan struct{}, 1)
	}
	mu.Unlock()
	select {
	case m.held <- struct{}{}:
		return nil
	default:
	}
	select {
	case m.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

func (m *mutex) unlock() { <-m.held }
