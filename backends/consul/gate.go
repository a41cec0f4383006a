package consulkv

import (
	"context"
	"slices"
	"sync"
)

// A gate lets so many in at once, and all others in the order in which they came.
type gate struct {
	width func() int // at least 1; whoever is inside when it shrinks stays

	mu     sync.Mutex
	inside int
	line   []chan struct{} // closed when it is their turn
}

// enter waits for its turn, or returns the cause of ctx's end. After it has returned nil,
// call leave.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	turn := make(chan struct{})
	g.line = append(g.line, turn)
	g.admit() // it may be wider than it was when somebody came last
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.line, turn)
	if i >= 0 {
		g.line = slices.Delete(g.line, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 { // it was let in meanwhile
		g.leave()
	}
	return context.Cause(ctx)
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// admit lets in as many as there is room for. The caller holds mu.
func (g *gate) admit() {
	for len(g.line) > 0 && g.inside < g.width() {
		g.inside++
		close(g.line[0])
		g.line = g.line[1:]
	}
}
