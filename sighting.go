package election

import (
	"context"
	"time"

	"github.com/electkv/election/kv"
)

// A sighting is the state of a safe as a watch reported it: a record, or
// kv.ErrVacant, or the error that ended the watch.
type sighting struct {
	rec kv.Record
	err error
}

// sightings watches the candidate's safe until stop is called, which waits for
// everything to end. The channel holds the latest sighting that nobody has taken
// yet. A watch that ends is started anew, at a bounded, jittered rate; each
// begins with the present state, so nothing is missed in between.
func (c *Candidate) sightings(ctx context.Context) (latest <-chan sighting, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan sighting, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		retry := c.pace.backoff()
		for ctx.Err() == nil {
			started := time.Now()
			for rec, err := range c.store.Watch(ctx, c.name) {
				if ctx.Err() != nil {
					return
				}
				select {
				case <-ch: // seen by nobody, and now out of date
				default:
				}
				ch <- sighting{rec, err}
			}
			if time.Since(started) > c.pace.pause {
				retry.reset()
			}
			sleep(ctx, retry.pause())
		}
	}()
	return ch, func() {
		cancel()
		<-done
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// outlasting returns a context that ends when another has been over for d, or when
// it is told to.
func outlasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		sleep(longer, d)
		cancel()
	})
	return longer, func() {
		forget()
		cancel()
	}
}
