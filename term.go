package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A Term is one stretch of leadership. Its methods may be called from any
// goroutine.
type Term struct {
	c     *campaign
	token uint64
	began time.Time
	ctx   termContext
	kill  context.CancelCauseFunc
	drain *drain // nil if no hook asks for it

	mu     sync.Mutex
	rec    machine.Ref   // to the record as last seen in the safe
	trust  machine.Trust // in the lease, as long as the term has not ended
	proved bool          // a refresh has extended it
	told   bool          // the campaign knows that the term has ended
	cause  error         // why the term has ended; nil while it has not
	reason Reason        // the same in a word
	called bool          // it ended for an heir that was called, which a watch may not show yet
	deaths *time.Timer   // ends the term when trust has run out
	vigil  *vigil        // has it look at the clock meanwhile
	recall func()        // ends the call for an heir that is on its way; nil if there is none

	lease   machine.Trust // that the store keeps others out, also after the end of the term
	missed  bool          // the record is gone
	stopped bool          // the work has stopped

	announced sync.Once   // that it has ended, to the hooks and the log
	lossTold  atomic.Bool // by Resign, that the record was gone
	delisted  sync.Once   // the roster does not list the candidate for it any more

	helpers   sync.WaitGroup     // of the goroutines that help the leader beside the campaign
	helping   context.Context    // ends when the safe is to be freed; nil if nothing helped yet
	unhelped  context.CancelFunc // ends that
	releasing mutex              // of a release
	calling   mutex              // of a call for an heir
	saying    mutex              // of a publication
	freed     bool               // handed over; guarded by the campaign's mu
	heir      string             // to whom; the same
	heirToken uint64             // of its term; the same
	released  bool               // nothing is left of the term; guarded by releasing
}

// newTerm begins a term. It may have ended already, if the trust is old.
func newTerm(c *campaign, rec kv.Record, trust machine.Trust) *Term {
	ctx, kill := context.WithCancelCause(c.base)
	t := &Term{
		c:     c,
		token: rec.Token,
		began: time.Now(),
		kill:  kill,
		rec:   machine.RefTo(rec),
		trust: trust,
		lease: machine.Trust{Sent: trust.Sent, Span: trust.Span + c.pace.Margin},
	}
	t.ctx = termContext{ctx, t}
	if c.opts.Hooks.ReleaseDone != nil {
		t.drain = drainOf(ctx)
	}
	t.vigil = keepVigil(t)
	t.mu.Lock()
	t.deaths = time.AfterFunc(trust.Left(c.clock.now()), t.die)
	t.mu.Unlock()
	if c.opts.Succession != nil || c.opts.Requests {
		t.help(t.heed)
	}
	return t
}

// help does something for the leader in the background, until its context ends: when the
// safe is to be freed. It is called with the campaign's mu held.
func (t *Term) help(do func(ctx context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.helping == nil {
		t.helping, t.unhelped = context.WithCancel(t.c.aid())
	}
	ctx := t.helping
	t.helpers.Go(func() { do(ctx) })
}

// stopHelpers ends the helpers that run, and lets no more start.
func (t *Term) stopHelpers() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.helping == nil {
		t.helping, t.unhelped = context.WithCancel(context.Background())
	}
	t.unhelped()
}

// over returns a channel that is closed when the lease is no longer kept, though it was
// not released.
func (t *Term) over() <-chan struct{} {
	if t.c.entry.drain {
		return nil
	}
	return t.ctx.Done()
}

// Token returns the term's fencing token: larger than that of every earlier term
// of the election. A resource that remembers the largest token that it has seen,
// and refuses smaller ones, is safe even from a leader that slept through the
// end of its term.
func (t *Term) Token() uint64 { return t.token }

// Record returns the term's record as last seen in the safe.
func (t *Term) Record() kv.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.Record()
}

// NamedRecord returns the name of the term's election, and Record. The two are for
// functions of a store beyond elections, such as a condition for a transaction of your own:
// Guard in the packages of etcd, Consul and SQL, Eval in that of Redis.
//
//	client.Txn(ctx).If(store.Guard(term.NamedRecord())...).Then(…)
func (t *Term) NamedRecord() (name string, rec kv.Record) { return t.c.name, t.Record() }

// Context returns a context that is cancelled when the term ends; context.Cause
// says why: ErrLost or ErrResigned, with the reason. Its Err method reads the
// clock as [Term.Err] does, so that work that was asleep finds out at once.
//
// It carries the values of the context given to Run or Campaign. Under Run it
// also ends when Run's context does, while the term goes on until the work has
// returned.
func (t *Term) Context() context.Context { return t.ctx }

// Err returns nil while the lease can be trusted, and otherwise the reason why
// the term has ended. It reads the clock, and counts the time that the system
// was suspended; it does not depend on a timer. Any time may pass between its answer
// and the caller's next step; the token protects against that.
func (t *Term) Err() error {
	now := t.c.clock.now()
	t.mu.Lock()
	if t.cause != nil || t.trust.Left(now) > 0 {
		defer t.mu.Unlock()
		return t.cause
	}
	t.mu.Unlock()
	return t.end(errExpired, ReasonExpired, false)
}

// Until returns the moment up to which the term can be trusted without another
// refresh. It does not allow for time that the system spends suspended, and a
// term may end sooner; use [Term.Err] to decide.
func (t *Term) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.c.clock.epoch.Add(t.trust.Sent.Mono + t.trust.Span)
}

// Proclaim publishes another value with the leader's ID. If the term has ended,
// or turns out to have ended, it returns why. After any other error the value may be
// published or not; the term goes on, and Proclaim may be called again. It waits for
// the store for a third of the TTL at most.
func (t *Term) Proclaim(ctx context.Context, value string) error {
	if len(value) > maxValue {
		return fmt.Errorf("election: value of %d bytes is too long: at most %d", len(value), maxValue)
	}
	err := t.publish(ctx, func(text *machine.Text) { text.Value = value })
	if err != nil && t.Err() == nil {
		err = fmt.Errorf("election: proclaim: %w", err)
	}
	return err
}

// publish changes the text of the term's record, except its signature, one change at a time.
// If the term has ended, or turns out to have ended, it returns why.
func (t *Term) publish(ctx context.Context, change func(*machine.Text)) error {
	ctx, cancel := context.WithTimeout(ctx, t.c.pace.Attempt)
	defer cancel()
	if err := t.saying.lock(ctx, &t.mu); err != nil {
		return err
	}
	defer t.saying.unlock()
	said, over := t.c.say(change), t.ctx.Done()
	for {
		select {
		case err := <-said:
			if err == nil {
				return nil
			}
			if ended := t.Err(); ended != nil {
				return ended
			}
			return err
		case <-over:
			if err := t.Err(); err != nil {
				return err
			}
			over = nil // the context of Run has ended, and the term goes on until the work has returned
		case <-ctx.Done():
			if err := t.Err(); err != nil {
				return err
			}
			return t.c.withTrouble(causeOf(ctx))
		}
	}
}

// Resign ends the term and frees the safe, so that the next candidate can be
// elected at once; if there is an heir (Options.Succession), the safe is handed over
// to it in one write. Call it when the work has stopped: after it, others may lead.
// Under Run, where that is when lead returns, it only ends the term; the safe is
// freed when lead has returned, and Run campaigns again.
//
// It is idempotent, and safe after a loss: only the term's own record is
// removed. If the record turns out to be gone though the term was trusted until
// now, the error matches [ErrLost], once, whatever else went wrong: another candidate may
// have led at the same time. After any other error the term has ended all the same, and its
// record is removed as soon as the store allows it, or expires. Call Resign again to wait
// for that. If the store does not answer, Resign waits until ctx ends or the record has
// expired. When it has returned nil, nothing that the term started is left. ctx must not be
// the term's own, which ends here.
func (t *Term) Resign(ctx context.Context) error { return t.resign(ctx, ErrResigned, false) }

// resign does so for a reason.
func (t *Term) resign(ctx context.Context, cause error, called bool) error {
	held := t.Err() == nil
	if !t.c.entry.drain {
		t.stop()
	}
	t.end(cause, ReasonResigned, called)
	if t.c.entry.drain {
		return nil
	}
	defer t.c.part()
	missing, err := t.release(ctx, t.c.fading())
	if t.c.entry.enlisted {
		t.delisted.Do(func() { t.c.delist(ctx) })
	}
	if taken := errors.Is(t.Err(), ErrResigned) && t.c.wasTaken(); missing && (held || taken) && !t.lossTold.Swap(true) {
		err = errors.Join(fmt.Errorf("election: resign: %w", errTaken), err)
	}
	return err
}

// release stops the leader's helpers, waits for them, and has the safes freed, for as long
// as that may take. It reports whether the record was gone when it first tried to
// remove it.
func (t *Term) release(ctx context.Context, within time.Duration) (missing bool, _ error) {
	if err := t.releasing.lock(ctx, &t.mu); err != nil {
		return false, fmt.Errorf("election: resign: %w", err)
	}
	defer t.releasing.unlock()
	if t.released {
		return false, nil
	}
	t.announce()
	t.stopHelpers()
	// The term's end has ended a call for an heir: what of it is on its way must not come later.
	if err := t.calling.lock(ctx, &t.mu); err != nil {
		return false, fmt.Errorf("election: resign: %w", err)
	}
	defer t.calling.unlock()
	t.tellEnd() // the goroutine that ended the term may not have done so yet
	t.c.post(&machine.Event{Kind: machine.Release, Within: within})
	select {
	case <-t.c.until(&t.c.gone):
	case <-ctx.Done():
		return t.c.isMissing(), fmt.Errorf("election: resign: %w", t.c.withTrouble(causeOf(ctx)))
	}
	t.helpers.Wait()
	t.released = true
	if t.c.fades {
		return t.c.missing, fmt.Errorf("election: resign: %w", t.c.withTrouble(errFades))
	}
	if t.c.missing && errors.Is(t.Err(), ErrResigned) {
		t.c.log.Warn("the record was gone before it was released: somebody else may have led meanwhile", "event", "record_missing", "token", t.token)
	}
	return t.c.missing, nil
}

// errFades is why a term has left something in the store.
var errFades = errors.New("what is left in the store will expire by itself")

// end ends the term for a reason, unless it has ended before, and returns why it
// has ended. Called says that an heir was called, which a watch may not show yet.
func (t *Term) end(cause error, reason Reason, called bool) error {
	first, cause := t.latch(cause, reason, called)
	if first {
		t.tellEnd()
	}
	return cause
}

// tellEnd tells the campaign that the term has ended, and why. It may be told twice
// at the same time.
func (t *Term) tellEnd() {
	t.mu.Lock()
	e := &machine.Event{Kind: machine.End, Cause: machineCause(t.cause), Look: t.called}
	told := t.told
	t.mu.Unlock()
	if told {
		return
	}
	t.c.post(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = true
}

// latch ends the term for a reason, unless it has ended before, and returns why it has
// ended. It does not block.
func (t *Term) latch(why error, reason Reason, called bool) (first bool, cause error) {
	t.mu.Lock()
	first = t.cause == nil
	if first {
		t.cause, t.reason, t.called = why, reason, called
		t.deaths.Stop()
	}
	cause = t.cause
	recall := t.recall
	t.mu.Unlock()
	if first {
		t.kill(cause)
		if recall != nil {
			recall()
		}
		t.announce()
		t.vigil.leave(t)
	}
	return first, cause
}

// boundCall sets what is called when the term ends, to end the call for an heir that is on its way;
// nil if there is none. It must not block. The term's context is no measure of that: it may have
// ended before, with that of Run.
func (t *Term) boundCall(recall func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recall = recall
}

// why returns the reason why the term has ended, in a word.
func (t *Term) why() Reason {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

// announce tells that the term has ended, once, and before anything that comes after it is told:
// the goroutine that ended the term may not have done so yet.
func (t *Term) announce() {
	t.mu.Lock()
	cause, reason := t.cause, t.reason
	t.mu.Unlock()
	if cause == nil {
		return
	}
	t.announced.Do(func() {
		t.c.roles.change(t.c, RoleLeader, RoleIdle)
		t.c.memory.ended(t.token, reason)
		t.hookEnd(cause, reason)
		t.c.log.Info("term ended", "event", "term_ended", "token", t.token, "cause", cause)
	})
}

// die is the dead-man timer. It runs whatever the store's calls are doing.
func (t *Term) die() {
	t.mu.Lock()
	left := t.trust.Left(t.c.clock.now())
	if t.cause == nil && left > 0 {
		t.deaths.Reset(left)
	}
	t.mu.Unlock()
	if left <= 0 {
		t.end(errExpired, ReasonExpired, false)
	}
}

// look resets the dead-man timer, which stands still while the system is suspended. Boot is a
// reading of the boot clock.
func (t *Term) look(boot time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil && t.deaths != nil {
		t.deaths.Reset(max(t.trust.Left(t.c.clock.with(boot)), 0))
	}
}

// update notes how the record was last seen.
func (t *Term) update(rec machine.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec = rec
}

// extend extends the trust in the lease. Trust that has run out is not restored, even if that
// was not noticed yet. It reads the clock under the mutex, so that a look that comes after a
// suspend, and corrects the timer, comes after this too.
func (t *Term) extend(trust machine.Trust) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.c.clock.now(); t.cause == nil && t.trust.Left(now) > 0 {
		t.trust, t.proved = trust, true
		t.deaths.Reset(trust.Left(now))
	}
}

// futile reports whether the term was lost without a single successful refresh: the
// store accepts claims, but nothing after them, as a store with a full disk may.
func (t *Term) futile() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Is(t.cause, ErrLost) && !t.proved
}

// A termContext answers Err by the clock, since a timer may be late.
type termContext struct {
	context.Context
	term *Term
}

// Err implements [context.Context].
func (c termContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	cause := c.term.Err()
	if cause == nil {
		return nil
	}
	c.term.kill(cause) // the goroutine that ended the term may not have done so yet
	return c.Context.Err()
}
