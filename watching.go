package election

import (
	"errors"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A watching shows the machine what a safe holds, for as long as the machine needs it.
type watching struct{ stop func() }

// arrangeWatch begins or ends the watch of a key, as the machine wants it.
func (c *campaign) arrangeWatch(k machine.Key) {
	w, wanted := c.watches[k], !c.left && c.state.Watched(k)
	switch {
	case wanted && w == nil:
		w = &watching{}
		c.watches[k] = w
		w.stop = c.follow(c.ctx(), c.nameOf(k), func(rec kv.Record, err error) { c.see(k, w, rec, err) })
	case !wanted && w != nil:
		c.watches[k] = nil
		c.start(func() (then func()) {
			w.stop()
			return nil
		})
	}
}

// see shows the machine what a watch has shown, if it is still wanted.
func (c *campaign) see(k machine.Key, w *watching, rec kv.Record, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watches[k] != w {
		return
	}
	waiting := c.lock(k).Phase == machine.Waiting
	switch {
	case errors.Is(err, kv.ErrVacant):
		rec = kv.Record{}
	case errors.Is(err, kv.ErrInvalid) && waiting:
		c.told.invalid = err
		c.decide(err)
		return
	case err != nil:
		c.hookWatch(k, err)
		c.fault(k, "watch_failed", "cannot watch the safe", err)
		return
	}
	c.heard()
	if k == machine.Lead {
		c.saw(rec)
	}
	c.step(&machine.Event{Kind: machine.Saw, Key: k, Sighting: machine.Sighting{Known: true, Record: rec}})
	if err == nil && waiting && c.lock(k).Phase == machine.Waiting && !c.state.Wrote(rec) {
		c.waitsFor(k, rec)
	}
}
