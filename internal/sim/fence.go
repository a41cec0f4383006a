package sim

import (
	"sync"

	"github.com/electkv/election/internal/history"
)

// A fence is a resource that remembers the largest token that it has seen, and
// refuses smaller ones.
type fence struct {
	w       *World
	mu      sync.Mutex
	largest uint64
}

// take takes or refuses a write that arrives now.
func (f *fence) take(n *Node, token uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := history.Accepted
	if token < f.largest && !f.w.Unfenced {
		kind = history.Refused
	}
	f.largest = max(f.largest, token)
	f.w.Note(history.Event{Who: n.Name, Kind: kind, Token: token})
}
