// Package gate bounds how many requests are on their way at once.
package gate

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// A Gate lets so many in at once, and all others in the order in which they came. Use [New]
// to make one.
type Gate struct {
	width func() int
	long  time.Duration // zero for any time

	mu     sync.Mutex
	inside int
	line   list.List // of channels, each closed when it is its turn
}

// New returns a gate. Its width is at least 1, and may change: a gate that becomes narrower
// turns out none that has passed it.
func New(width func() int) *Gate { return &Gate{width: width} }

// Fixed returns a gate whose width does not change.
func Fixed(width int) *Gate { return New(func() int { return width }) }

// Yielding returns a gate as [Fixed] does. What takes longer than long makes room for the
// next, so that what hangs holds up nothing else.
func Yielding(width int, long time.Duration) *Gate {
	g := Fixed(width)
	g.long = long
	return g
}

// Enter waits for its turn, or returns the cause of ctx's end. Leave makes room for the next,
// or does nothing if there was an error.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	if err := g.wait(ctx); err != nil {
		return func() {}, err
	}
	once := sync.OnceFunc(g.leave)
	if g.long == 0 {
		return once, nil
	}
	late := time.AfterFunc(g.long, once)
	return func() {
		late.Stop()
		once()
	}, nil
}

// wait waits for its turn.
func (g *Gate) wait(ctx context.Context) error {
	g.mu.Lock()
	turn := make(chan struct{})
	place := g.line.PushBack(turn)
	g.admit() // it may be wider than it was at the last call
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // it was let in meanwhile
		g.inside--
		g.admit()
	default:
		g.line.Remove(place)
	}
	return context.Cause(ctx)
}

// leave lets the next one in.
func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// admit lets in as many as there is room for. It is called with mu held.
func (g *Gate) admit() {
	for next := g.line.Front(); next != nil && g.inside < g.width(); next = g.line.Front() {
		g.inside++
		close(g.line.Remove(next).(chan struct{}))
	}
}

// Do calls do when it is its turn, or when ctx has ended: do then finds that out for itself.
func (g *Gate) Do(ctx context.Context, do func()) {
	leave, _ := g.Enter(ctx)
	defer leave()
	do()
}

// Each calls do for each of the items, as Do does, and returns after the last.
func (g *Gate) Each(ctx context.Context, items []int, do func(item int)) {
	var going sync.WaitGroup
	defer going.Wait()
	for _, item := range items {
		leave, _ := g.Enter(ctx) // here, so that no goroutine waits
		going.Go(func() {
			defer leave()
			do(item)
		})
	}
}
