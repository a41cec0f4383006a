package election

import (
	"context"
	"sync"
	"time"
)

// A drain measures how long a term's work went on after the end of its context. It is for the
// hooks; a nil drain measures nothing.
type drain struct {
	stop  func() bool   // does not note the end of the context any more
	noted chan struct{} // closed when that was noted
	once  sync.Once
	ended time.Time // the context; zero if the work stopped first
	done  time.Time // the work
}

// drainOf returns the drain of the work under a context.
func drainOf(ctx context.Context) *drain {
	d := &drain{noted: make(chan struct{})}
	d.stop = context.AfterFunc(ctx, func() {
		d.ended = time.Now()
		close(d.noted)
	})
	return d
}

// finish notes that the work has stopped, unless it had before, and returns for how long it
// went on, and when it stopped.
func (d *drain) finish() (took time.Duration, done time.Time) {
	if d == nil {
		return 0, done
	}
	d.once.Do(func() {
		if !d.stop() {
			<-d.noted
		}
		d.done = time.Now()
	})
	if d.ended.IsZero() {
		return 0, d.done
	}
	return d.done.Sub(d.ended), d.done
}
