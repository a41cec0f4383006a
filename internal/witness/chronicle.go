package witness

import (
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// A Chronicle takes down what happens. Several goroutines may use it at the same time. The zero value is
// empty.
type Chronicle struct {
	mu     sync.Mutex
	events []history.Event
	more   chan struct{} // closed when an event comes; nil if that is not waited for
}

// Note takes an event down, and fills in when it happened if the event does not say.
func (c *Chronicle) Note(e history.Event) {
	if e.At == 0 {
		e.At = boottime.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// History returns what has happened until now, sorted.
func (c *Chronicle) History(about history.About) history.History {
	events, _ := c.since(0)
	h := history.History{About: about, Events: slices.Clone(events)}
	h.Sort()
	return h
}

// Await waits, at most for so long, for an event that is the cue, and returns it. It passes over
// the first seen events that came. It returns how many there are up to and with the cue, for the
// next call, and reports whether the cue came.
func (c *Chronicle) Await(seen int, within time.Duration, cue func(history.Event) bool) (e history.Event, now int, ok bool) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		events, more := c.since(seen)
		for _, e := range events {
			seen++
			if cue(e) {
				return e, seen, true
			}
		}
		select {
		case <-more:
		case <-late.C:
			return history.Event{}, seen, false
		}
	}
}

// since returns the events but for the first n, and what is closed when there are more.
func (c *Chronicle) since(n int) (events []history.Event, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return c.events[n:], c.more
}
