package consulkv

import (
	"context"
	"sync"
	"time"
)

// A view is what all watches of one key over one client share: one of them looks at
// a time, and tells the others what it has seen.
type view struct {
	watches int           // guarded by the connections
	turn    chan struct{} // holds one, while a watch looks

	mu    sync.Mutex
	index uint64        // to look on from
	begun uint64        // looks
	last  sight         // the one that ended last
	news  chan struct{} // closed when there is another
	pace  pace

	confirmed   version   // what a refresh has found the key to have
	confirmedAt time.Time // when that was asked
}

// A sight is what a look has shown.
type sight struct {
	number uint64 // of the look, from 1
	now    entry
	index  uint64 // that the look has reached
	err    error
}

// A subject is what a view is of. Stores differ in what they make of a key.
type subject struct {
	key             string
	plain, observed bool
}

// join returns the view that watches of the subject share, and a reader of it for one
// that has seen the key by itself, at the index own. The view's first look is from another one on.
func (c *connections) join(of subject, index, own uint64) *reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[of]
	if v == nil {
		v = &view{turn: make(chan struct{}, 1), news: make(chan struct{}), index: index}
		c.views[of] = v
	}
	v.watches++
	v.mu.Lock()
	defer v.mu.Unlock()
	return &reader{view: v, own: own, before: v.begun}
}

// confirm takes in that a key was found unchanged, by a request that was sent after an instant.
func (c *connections) confirm(of subject, found version, at time.Time) {
	c.mu.Lock()
	v := c.views[of]
	c.mu.Unlock()
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.confirmed, v.confirmedAt = found, at
}

// confirmedSince reports whether a key was found to have the version since an instant.
func (v *view) confirmedSince(then time.Time, had version) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.confirmed == had && v.confirmedAt.After(then)
}

func (c *connections) leave(of subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.views[of]; v.watches > 1 {
		v.watches--
		return
	}
	delete(c.views, of)
}

// A reader is one watch of a view.
type reader struct {
	*view
	own    uint64 // the index of what it has seen by itself
	before uint64 // looks that had begun until then
	taken  uint64 // the last that it knows of
}

// next returns what the next look shows, of whichever watch. A look that began
// before the reader came may show what is older than the reader has seen.
func (r *reader) next(ctx context.Context, look func(ctx context.Context, index uint64) (now entry, reached, next uint64, err error)) (entry, error) {
	for {
		r.mu.Lock()
		last, news := r.last, r.news
		r.mu.Unlock()
		if last.number > r.taken {
			r.taken = last.number
			if last.number > r.before || last.index > r.own {
				return last.now, last.err
			}
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
			return entry{}, context.Cause(ctx)
		case r.turn <- struct{}{}:
			r.look(ctx, look)
			<-r.turn
		}
		if ctx.Err() != nil {
			return entry{}, context.Cause(ctx)
		}
	}
}

// look looks for all, unless somebody else just has. Should the reader leave
// meanwhile, the others know nothing of it, and one of them looks.
func (r *reader) look(ctx context.Context, look func(ctx context.Context, index uint64) (now entry, reached, next uint64, err error)) {
	r.mu.Lock()
	if r.last.number > r.taken {
		r.mu.Unlock()
		return
	}
	r.begun++
	number, index := r.begun, r.index
	now := time.Now()
	if r.pace.due.After(now) {
		r.pace.due = r.pace.due.Add(-paceEvery) // one watch looks at a time: this is a turn that was given up
	}
	wait := r.pace.turn(now, paceBurst, paceEvery)
	r.mu.Unlock()
	if sleep(ctx, wait) != nil {
		return
	}
	seen, reached, next, err := look(ctx, index)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = sight{number: number, now: seen, index: reached, err: err}
	if err == nil {
		r.index = next
	}
	close(r.news)
	r.news = make(chan struct{})
}
