package chronicle

import (
	"context"
	"slices"
	"time"

	"github.com/electkv/election/internal/boottime"
)

const (
	// Most is how many elections a search follows at most.
	Most = 1000

	// A search asks for names again when searchPause has passed, and rest times as long as the
	// answer took: a store with a great many keys is not kept busy by it.
	searchPause = 5 * time.Second
	rest        = 20

	// longAgo is how long an election that was found is still followed when nobody leads it,
	// and the store has no place for it any more.
	longAgo = time.Hour
)

// A Search is how the search for elections goes.
type Search struct {
	On      bool
	Trouble string // why the store's elections cannot be listed; empty if they can be
	Left    bool   // there are more than Most, and the rest is left out
}

// A Lister returns names of elections: at most so many, and whether there are more.
type Lister func(ctx context.Context, most int) (names []string, more bool, err error)

// Search follows the elections that list returns. It asks again and again until the chronicle
// is closed, and forgets those that have been neither listed nor led for an hour.
func (c *Chronicle) Search(list Lister) {
	c.mu.Lock()
	c.search.On = true
	c.mu.Unlock()
	c.work.Go(func() {
		for {
			asked := boottime.Now()
			names, more, err := list(c.ctx, Most)
			if c.ctx.Err() != nil {
				return
			}
			c.found(names, more, err)
			if !sleep(c.ctx, max(searchPause, rest*(boottime.Now()-asked))) {
				return
			}
		}
	})
}

// found takes in what a search has found.
func (c *Chronicle) found(names []string, more bool, err error) {
	next := Search{On: true, Left: more}
	if err != nil {
		next.Trouble = err.Error()
	} else {
		c.drop(names, boottime.Now()-longAgo)
	}
	for _, name := range names {
		if c.room() {
			c.follow(name, true)
		} else {
			next.Left = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if next != c.search {
		c.search = next
		c.wake()
	}
}

func (c *Chronicle) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.elections) < Most
}

// drop forgets elections that were found before, and are not among the names any more, if nobody
// has led them since a time.
func (c *Chronicle) drop(names []string, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.elections {
		now := f.Now()
		if f.listed && now.State == Vacant && now.From < since && !slices.Contains(names, f.Name) {
			c.forget(f)
		}
	}
}
