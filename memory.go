package election

import (
	"sync"

	"github.com/electkv/election/internal/machine"
)

// recall returns what the candidate remembers of earlier campaigns.
func (c *Candidate) recall() machine.Memory {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	return c.memory.kept
}

// A memory is kept between campaigns.
type memory struct {
	mu   sync.Mutex
	kept machine.Memory
}

func (m *memory) keep(now machine.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = now
}
