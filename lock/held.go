package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// A Held is a lock that is held, until it is unlocked or lost. Its methods may be
// called from any goroutine.
type Held struct {
	name string
	term *election.Term
	pass func()      // lets the next goroutine of this process have its turn
	free atomic.Bool // the store has confirmed that our record is gone
}

// Context returns a context that ends when the lock is lost or unlocked;
// context.Cause tells ErrLost and ErrUnlocked apart. Its Err method asks the clock as
// [Held.Err] does. It carries the values of the context given to Lock, and does
// not end with that.
func (h *Held) Context() context.Context { return h.term.Context() }

// Err returns nil while the lock is certainly held, and otherwise the reason why it is
// not: ErrLost or ErrUnlocked. It reads the clock, so work that
// was asleep finds out at once. Any time may pass between its answer and the caller's
// next step; the token protects against that.
func (h *Held) Err() error { return h.term.Err() }

// Token returns the fencing token: larger than that of every earlier holder of
// the lock. A resource that remembers the largest that it has seen, and refuses
// smaller ones, is safe from holders that were asleep (package fence).
func (h *Held) Token() uint64 { return h.term.Token() }

// Remaining returns how long the lock is certainly held without another refresh, or
// zero if it is no longer held. It counts the time that the system was suspended.
func (h *Held) Remaining() time.Duration { return h.term.Remaining() }

// Record returns what the store holds for the lock, as last seen.
func (h *Held) Record() kv.Record { return h.term.Record() }

// NamedRecord returns the lock's name and Record, for the stores' guards. A guard lets a
// write through only while the lock is held.
func (h *Held) NamedRecord() (name string, rec kv.Record) { return h.term.NamedRecord() }

// Unlock frees the lock, so that others can have it at once, or when Options.Hold is
// over. Call it when the work has stopped, even if the lock was lost: then it returns an
// error that matches ErrLost, and removes only what is still ours. Unlocking again is
// ErrMisuse.
//
// After an error that matches ErrUnavailable the lock is given up all the same. Others
// can have it when the record expires, or at once if Unlock is called again and
// the store answers.
//
// Locks are often unlocked because a context has ended. So the end of ctx does not
// stop Unlock, nor does the end of the held lock's own context. It takes a third of
// the TTL at most, and less if ctx has a deadline that is still to come.
func (h *Held) Unlock(ctx context.Context) error {
	if h == nil || h.term == nil {
		return failed("", ErrMisuse, errors.New("unlock of a lock that was never held"))
	}
	ctx, cancel := h.patience(ctx)
	defer cancel()
	err := h.term.Resign(ctx)
	h.pass()
	gone := errors.Is(err, ErrLost) // which was not reported yet
	if (err == nil || gone) && h.free.Swap(true) {
		return failed(h.name, ErrMisuse, errors.New("it was unlocked before"))
	}
	lost := h.Err()
	switch {
	case gone:
		return failed(h.name, err)
	case !errors.Is(lost, ErrLost) && err == nil:
		return nil
	case !errors.Is(lost, ErrLost):
		return failed(h.name, ErrUnavailable, err)
	case err == nil:
		return failed(h.name, lost)
	}
	return failed(h.name, lost, ErrUnavailable, err)
}

// patience returns the context of an unlock.
func (h *Held) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	most := h.Record().TTL / 3
	if end, ok := ctx.Deadline(); ok && time.Until(end) > 0 {
		most = min(most, time.Until(end))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), most)
}

// during returns a context that ends with the lock and with ctx.
func (h *Held) during(ctx context.Context) (context.Context, func()) {
	both, end := context.WithCancelCause(h.Context())
	unlink := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	return workContext{both, h.Context(), end}, func() {
		unlink()
		end(context.Canceled)
	}
}

// A workContext ends with two contexts, one of them a lock's, which reads the
// clock when it is asked for its error, since a timer may be late.
type workContext struct {
	context.Context
	lock context.Context
	end  context.CancelCauseFunc
}

// Err implements [context.Context].
func (c workContext) Err() error {
	if c.lock.Err() != nil {
		c.end(context.Cause(c.lock)) // what ended the lock may not have ended this context yet
	}
	return c.Context.Err()
}
