package trace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/electkv/election/internal/machine"
)

// A campaign is one that was traced.
type campaign struct {
	state    machine.Campaign
	replayed bool // its order is known
	last     machine.Instant
	left     bool
}

// step has the core take a step again.
func (c *campaign) step(m machine.Move) error {
	switch {
	case c.left:
		return errors.New("the campaign takes a step after it has left")
	case m.Now.Mono < c.last.Mono || m.Now.Boot < c.last.Boot:
		return fmt.Errorf("a step at %v comes after one at %v", m.Now, c.last)
	}
	c.last = m.Now
	c.left = slices.ContainsFunc(m.Effects, func(f machine.Effect) bool { return f.Kind == machine.Left })
	if !c.replayed {
		return nil
	}
	if m.Event.Kind == machine.Saw && !c.state.Watched(m.Event.Key) {
		return fmt.Errorf("a watch shows the key of the %s, which the core does not want to see", m.Event.Key)
	}
	var effects []machine.Effect
	c.state, effects = machine.Step(c.state, m.Now, m.Event)
	if !slices.Equal(effects, m.Effects) {
		return fmt.Errorf("the core decides %s, and the runtime was told %s", textOf(effects), textOf(m.Effects))
	}
	return nil
}
