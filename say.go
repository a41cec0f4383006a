package election

import (
	"github.com/electkv/election/internal/machine"
)

// say has the leader's record changed. The channel gets the outcome: nil when the record says
// so, or the reason why it never will.
func (c *campaign) say(change func(*machine.Text)) <-chan error {
	said := make(chan error, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.state.Lead.Text
	change(&text)
	c.saying = said
	c.step(&machine.Event{Kind: machine.Say, Text: text})
	if lead := &c.state.Lead; lead.Says(text) {
		c.said(machine.Lead, nil)
	}
	return said
}

// said tells the leader the outcome of its publication.
func (c *campaign) said(k machine.Key, err error) {
	if k == machine.Lead && c.saying != nil {
		c.saying <- err
		c.saying = nil
	}
}

// isMissing reports whether the record was gone before its removal was requested.
func (c *campaign) isMissing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// wasTaken reports whether it was gone although the store should still have kept it.
func (c *campaign) wasTaken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// withTrouble returns an error that names the last trouble as well.
func (c *campaign) withTrouble(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told.with(err)
}
