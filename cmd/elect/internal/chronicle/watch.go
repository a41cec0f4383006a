package chronicle

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// The safes of an election that are read, in the order in which trouble with them counts.
const (
	leaderSafe = "leader"
	heirSafe   = "heir"
	holdSafe   = "hold"
)

// After trouble with the store a watch waits so long before it begins again: twice as long
// each time.
const (
	leastPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

// holdTime is how long the answer is waited for to the question whether there is a hold.
const holdTime = 5 * time.Second

func (c *Chronicle) watchLeader(ctx context.Context, f *followed) {
	c.watch(ctx, f, leaderSafe, f.Name, f.see, func(vacant bool) {
		if vacant {
			c.readHold(ctx, f)
		}
	})
}

func (c *Chronicle) watchHeir(ctx context.Context, f *followed) {
	c.watch(ctx, f, heirSafe, reserved.Heir(f.Name), f.seeHeir, func(bool) {})
}

// watch takes in what a safe holds until ctx ends, or the store can never tell. It calls see
// with mu held, and after after that. See reports whether that changes what is known.
func (c *Chronicle) watch(ctx context.Context, f *followed, safe, name string, see func(kv.Record, bool, time.Duration) bool, after func(vacant bool)) {
	pause := time.Duration(0)
	for {
		err := errEnded
		for rec, seen := range c.store.Watch(ctx, name) {
			vacant := errors.Is(seen, kv.ErrVacant)
			if seen != nil && !vacant {
				err = seen
				break
			}
			pause = 0
			c.take(f, safe, func(at time.Duration) bool { return see(rec, vacant, at) })
			after(vacant)
		}
		if ctx.Err() != nil {
			return
		}
		c.miss(f, safe, err)
		if errors.Is(err, kv.ErrInvalid) {
			return
		}
		pause = min(max(2*pause, leastPause), mostPause)
		if !sleep(ctx, pause) {
			return
		}
	}
}

var errEnded = errors.New("the watch has ended")

// take takes in what was seen of a safe.
func (c *Chronicle) take(f *followed, safe string, see func(at time.Duration) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := see(boottime.Now())
	if f.trouble(safe, "") || changed {
		c.tell(f)
	}
}

// miss notes that a safe cannot be watched.
func (c *Chronicle) miss(f *followed, safe string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := boottime.Now()
	if safe == leaderSafe {
		f.hide(at)
	} else {
		f.seeHeir(kv.Record{}, true, at)
	}
	if f.trouble(safe, err.Error()) {
		c.tell(f)
	}
}

// readHold finds out until when a vacant election is closed.
func (c *Chronicle) readHold(ctx context.Context, f *followed) {
	bounded, cancel := context.WithTimeout(ctx, holdTime)
	defer cancel()
	hold, err := election.CurrentHold(bounded, c.store, f.Name)
	if ctx.Err() != nil {
		return
	}
	why := ""
	if err != nil && !errors.Is(err, election.ErrNoHold) && !errors.Is(err, kv.ErrInvalid) {
		why = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if news := !f.Hold.Equal(hold.Until); f.trouble(holdSafe, why) || news {
		f.Hold = hold.Until
		c.tell(f)
	}
}

// sleep reports whether ctx is still alive after d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
