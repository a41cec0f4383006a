package election

import (
	"context"
	"sync"
)

// A mutex is one whose lock stops waiting when a context ends. It has no channel until it is
// first used: most terms never use theirs.
type mutex struct {
	held chan struct{} // holds one value while the mutex is locked
}

// lock waits for the mutex, or returns why ctx has ended. If the mutex is free, lock takes it
// even if ctx has ended. The channel is made once, under mu.
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
