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
// everything to end. The channel holds the latest sighting that was not received
// yet.
func (c *Candidate) sightings(ctx context.Context) (latest <-chan sighting, stop func()) {
	ch := make(chan sighting, 1)
	return ch, c.follow(ctx, c.name, func(rec kv.Record, err error) {
		select {
		case <-ch: // was not received, and is now out of date
		default:
		}
		ch <- sighting{rec, err}
	})
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
