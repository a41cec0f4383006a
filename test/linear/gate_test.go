//go:build unix

package linear_test

import (
	"context"
	"sync"
)

// A gate lets clients do a number of operations and then has them wait, so that
// faults and operations are in proportion, however fast the store is.
type gate struct {
	mu         sync.Mutex
	done, goal int
	opened     chan struct{} // closed when the goal is set
	reached    chan struct{} // closed when it is reached
}

func newGate() *gate { return &gate{opened: make(chan struct{}), reached: make(chan struct{})} }

// open lets n more operations pass. The channel is closed when they are done.
func (g *gate) open(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.goal = g.done + n
	g.reached = make(chan struct{})
	close(g.opened)
	g.opened = make(chan struct{})
	return g.reached
}

// pass counts an operation, and waits if it was the last one for now.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	g.done++
	if g.done == g.goal {
		close(g.reached)
	}
	shut, opened := g.done >= g.goal, g.opened
	g.mu.Unlock()
	if shut {
		select {
		case <-opened:
		case <-ctx.Done():
		}
	}
}
