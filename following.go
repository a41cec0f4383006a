package election

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A following reports what a safe holds, again and again: when a watch ends with an error, it
// begins another after a pause.
type following struct {
	begin func(tell func(kv.Record, error)) (end func())
	tell  func(kv.Record, error)
	calm  time.Duration // after it, an error is not one of a row

	mu    sync.Mutex
	retry backoff
	since time.Time   // when the present one has begun
	end   func()      // ends it
	again *time.Timer // begins the next; nil if there was none yet
	over  bool
}

// follow calls tell with what a safe holds, and with errors, until stop is called. It
// begins again after each error, at a bounded, jittered rate, with the present state, so
// nothing is missed in between. The calls come from other goroutines, one at a time. When stop
// returns, no call is under way and none will follow.
func (c *Candidate) follow(ctx context.Context, name string, tell func(kv.Record, error)) (stop func()) {
	f := &following{tell: tell, calm: c.pace.Pause, retry: c.pace.backoff()}
	f.begin = func(tell func(kv.Record, error)) func() { return board.Follow(ctx, c.store, name, tell) }
	f.start()
	return f.stop
}

// start begins, unless it is over.
func (f *following) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.since = time.Now()
		f.end = f.begin(f.see)
	}
}

// see passes on what is seen, and begins anew after the end.
func (f *following) see(rec kv.Record, err error) {
	f.tell(rec, err)
	if err == nil || errors.Is(err, kv.ErrVacant) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	if time.Since(f.since) > f.calm {
		f.retry.reset()
	}
	end := f.end
	f.again = time.AfterFunc(f.retry.pause(), func() {
		end()
		f.start()
	})
}

func (f *following) stop() {
	f.mu.Lock()
	f.over = true
	if f.again != nil {
		f.again.Stop()
	}
	end := f.end
	f.mu.Unlock()
	end()
}
