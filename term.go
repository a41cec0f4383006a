package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/kv"
)

// A Term is one stretch of leadership. Its methods may be called from any
// goroutine.
type Term struct {
	c     *Candidate
	token uint64
	began time.Time
	drain bool  // Run releases the safe, when the work has returned
	place *heir // that the candidate had when it was elected, to be given up; nil if none
	ctx   termContext
	kill  context.CancelCauseFunc

	mu     sync.Mutex
	rec    kv.Record   // as last seen in the safe
	trust  trust       // in the lease, as long as the term has not ended
	proved bool        // a refresh has extended it
	cause  error       // why the term has ended; nil while it has not
	ended  time.Time   // and when
	deaths *time.Timer // ends the term when trust has run out

	keeping   context.CancelFunc // stops the keeper and the other aides
	kept      chan struct{}      // closed when they have returned
	releasing chan struct{}      // holds one value while somebody releases
	calling   chan struct{}      // holds one value while somebody is called to be heir
	freed     bool               // the safe is known to be without our record; guarded by releasing
	released  bool               // and so is the heir's; guarded by releasing
	asked     bool               // it was asked to drop it, and may have; guarded by releasing
}

// An aide does something for a term in the background, until ctx ends.
type aide func(ctx context.Context, t *Term)

// newTerm begins a term. It may have ended already, if the mandate is old.
func newTerm(base context.Context, c *Candidate, m mandate, s stand, aides ...aide) *Term {
	ctx, kill := context.WithCancelCause(base)
	keep, keeping := context.WithCancel(context.WithoutCancel(base))
	t := &Term{
		c:         c,
		token:     m.rec.Token,
		began:     time.Now(),
		drain:     s.drain,
		place:     s.heir,
		kill:      kill,
		rec:       m.rec,
		trust:     m.trust,
		keeping:   keeping,
		kept:      make(chan struct{}),
		releasing: make(chan struct{}, 1),
		calling:   make(chan struct{}, 1),
	}
	t.ctx = termContext{ctx, t}
	t.mu.Lock()
	t.deaths = time.AfterFunc(min(m.trust.left(c.clock()), c.pace.tick), t.die)
	t.mu.Unlock()
	aides = append(aides, func(ctx context.Context, t *Term) { t.keep(ctx, m.trust.sent) })
	var working atomic.Int32
	working.Store(int32(len(aides))) //nolint:gosec // a handful
	for _, do := range aides {
		go func() {
			do(keep, t)
			if working.Add(-1) == 0 {
				close(t.kept)
			}
		}()
	}
	return t
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
	return t.rec
}

// NamedRecord returns the name of the term's election, and Record. The two are for
// what a store offers beyond elections, such as a condition for one's own transaction:
// Guard in the packages of etcd, Consul and SQL, Eval in that of Redis.
//
//	client.Txn(ctx).If(store.Guard(term.NamedRecord())).Then(…)
func (t *Term) NamedRecord() (name string, rec kv.Record) { return t.c.name, t.Record() }

// Context returns a context that is cancelled when the term ends; context.Cause
// says why: ErrLost or ErrResigned, with the reason. Its Err method asks the
// clock as [Term.Err] does, so that work that was asleep finds out at once.
//
// It carries the values of the context given to Run or Campaign. Under Run it
// also ends when Run's context does, while the term goes on until the work has
// returned.
func (t *Term) Context() context.Context { return t.ctx }

// Err returns nil while the lease can be trusted at this very moment, else why
// the term has ended. It reads the clock, and counts the time that the system
// was suspended; it depends on no timer having fired. Between its answer and
// what the caller does next any time may pass: that is what the token is for.
func (t *Term) Err() error {
	now := t.c.clock()
	t.mu.Lock()
	if t.cause != nil || t.trust.left(now) > 0 {
		defer t.mu.Unlock()
		return t.cause
	}
	t.mu.Unlock()
	return t.expire()
}

// Until returns the moment up to which the term can be trusted if it is not
// refreshed before. Time that the system spends suspended is not in it, and a
// term may end sooner; use [Term.Err] to decide.
func (t *Term) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trust.until()
}

// Proclaim publishes another value with the leader's ID. If the term has ended,
// or turns out to have, it returns why. After any other error the value may be
// published or not; the term goes on, and Proclaim may be called again. It gives
// the store no more than a third of the TTL to answer.
func (t *Term) Proclaim(ctx context.Context, value string) error {
	if len(value) > maxValue {
		return fmt.Errorf("election: value of %d bytes is too long: at most %d", len(value), maxValue)
	}
	err := t.publish(ctx, func(rec *kv.Record) { rec.Value = value })
	if err != nil && t.Err() == nil {
		err = fmt.Errorf("election: proclaim: %w", err)
	}
	return err
}

// publish changes what the term's record says beside its signature. If the term has
// ended, or turns out to have, it returns why.
func (t *Term) publish(ctx context.Context, change func(*kv.Record)) error {
	for {
		if err := t.Err(); err != nil {
			return err
		}
		old := t.Record()
		next := old
		change(&next)
		err := t.swap(ctx, old, next)
		if err == nil {
			return nil
		}
		if errors.Is(err, kv.ErrStale) {
			err = t.review(ctx, old)
		}
		if ended := t.Err(); ended != nil {
			return ended
		}
		if err != nil {
			return err
		}
	}
}

// swap puts next in the place of old, if that is what the safe holds.
func (t *Term) swap(ctx context.Context, old, next kv.Record) error {
	ctx, cancel := context.WithTimeout(ctx, t.patience())
	defer cancel()
	rec, err := t.c.store.Swap(ctx, t.c.name, old, next)
	if err == nil {
		t.update(rec)
	}
	return err
}

// review looks why old was stale. It returns nil if the record is still this
// term's, only changed: a swap whose reply was lost has taken place.
func (t *Term) review(ctx context.Context, old kv.Record) error {
	ctx, cancel := context.WithTimeout(ctx, t.patience())
	defer cancel()
	rec, err := t.c.store.Get(ctx, t.c.name)
	switch {
	case errors.Is(err, kv.ErrVacant), err == nil && !rec.Owns(old):
		return t.end(t.c.office.taken())
	case err != nil:
		return err
	case rec.Revision == old.Revision:
		return fmt.Errorf("the store refuses a record that it shows unchanged: %w", kv.ErrStale)
	}
	t.update(rec)
	return nil
}

// Resign ends the term and frees the safe, so that the next candidate can be
// elected at once; if there is an heir (Options.Succession), the safe is handed over
// to it in one write. Call it when the work has stopped: after it, others may lead.
// Under Run, where that is when lead returns, it only ends the term; the safe is
// freed when lead has returned, and Run campaigns again.
//
// It is idempotent, and safe after a loss: only the term's own record is
// removed. If the record turns out to be gone though the term was trusted until
// now, the error matches [ErrLost], once, whatever else went wrong: somebody else may
// have led beside it. After any other error the term has ended all the same and its record is left
// to fade; Resign can be called again. When it has returned nil, nothing that the
// term started is left. ctx must not be the term's own, which ends here.
func (t *Term) Resign(ctx context.Context) error { return t.resign(ctx, ErrResigned) }

// resign does so for a reason.
func (t *Term) resign(ctx context.Context, cause error) error {
	held := t.Err() == nil
	t.end(cause)
	if t.drain {
		return nil
	}
	defer t.c.flush()
	gone, err := t.release(ctx)
	if gone && held {
		err = errors.Join(fmt.Errorf("election: resign: %w", t.c.office.taken()), err)
	}
	return err
}

// release stops the aides, waits for them, gives up the heir's place if it is still
// the term's own, and frees the safe. It reports whether the record was gone when it
// was first asked to remove it.
func (t *Term) release(ctx context.Context) (gone bool, _ error) {
	select {
	case t.releasing <- struct{}{}:
	default:
		select {
		case t.releasing <- struct{}{}:
		case <-ctx.Done():
			return false, fmt.Errorf("election: resign: %w", causeOf(ctx))
		}
	}
	defer func() { <-t.releasing }()
	if t.released {
		return false, nil
	}
	t.keeping()
	select {
	case <-t.kept:
	case <-ctx.Done():
		return false, fmt.Errorf("election: resign: %w", causeOf(ctx))
	}
	select { // the term's end has ended a call for an heir: what of it is on its way must not come later
	case t.calling <- struct{}{}:
		<-t.calling
	case <-ctx.Done():
		return false, fmt.Errorf("election: resign: %w", causeOf(ctx))
	}
	err := t.leave(ctx)
	if !t.freed {
		var trouble error
		gone, trouble = t.free(ctx)
		err = errors.Join(trouble, err)
	}
	t.released = err == nil
	return gone, err
}

// leave gives up the heir's place, before the leader's safe is freed, so that somebody
// else can become heir meanwhile. It takes a part of the time that a release has: if the
// heir's safe does not answer, the leader's is to be freed at least.
func (t *Term) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.c.pace.attempt/3)
	defer cancel()
	return t.place.leave(ctx)
}

// free hands the safe over to the heir, or else deletes the record.
func (t *Term) free(ctx context.Context) (gone bool, _ error) {
	heir, err := t.handOver(ctx)
	if err != nil {
		return false, fmt.Errorf("election: hand over: %w", err)
	}
	if heir != "" {
		t.freed = true
		t.c.log.Info("handed over", "token", t.token, "heir", heir)
		return false, nil
	}
	err = t.c.store.Delete(ctx, t.c.name, t.Record())
	gone, t.asked = errors.Is(err, kv.ErrStale) && !t.asked, true
	if err != nil && !errors.Is(err, kv.ErrStale) {
		return false, fmt.Errorf("election: resign: %w", err)
	}
	t.freed = true
	switch {
	case err == nil:
		level, _ := t.c.office.ended()
		t.c.log.Log(ctx, level, "released", "token", t.token)
	case gone && errors.Is(t.Err(), ErrResigned):
		t.c.log.Warn("the record was gone before it was released: somebody else may have led meanwhile", "token", t.token)
	}
	return gone, nil
}

// end ends the term for a reason, unless it has ended before, and returns why it
// has ended.
func (t *Term) end(cause error) error {
	t.mu.Lock()
	first := t.cause == nil
	if first {
		t.cause, t.ended = cause, time.Now()
		t.deaths.Stop()
	}
	cause = t.cause
	t.mu.Unlock()
	if first {
		t.kill(cause)
		t.c.roles.change(t.c.office.roles())
		level, text := t.c.office.ended()
		t.c.log.Log(context.Background(), level, text, "token", t.token, "cause", cause)
	}
	return cause
}

// expire ends the term because trust has run out.
func (t *Term) expire() error {
	return t.end(fmt.Errorf("%w: not refreshed in time", t.c.office.lost()))
}

// die is the dead-man timer. It runs whatever the store's calls are doing, and
// looks at the clock at least once a tick, since timers stand still while the
// system is suspended.
func (t *Term) die() {
	now := t.c.clock()
	t.mu.Lock()
	left := t.trust.left(now)
	if t.cause == nil && left > 0 {
		t.deaths.Reset(min(left, t.c.pace.tick))
	}
	t.mu.Unlock()
	if left <= 0 {
		t.expire()
	}
}

// patience returns how long a request on behalf of the term may take: no longer
// than its answer can still be of use, while the term lasts.
func (t *Term) patience() time.Duration {
	now := t.c.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := t.trust.left(now); t.cause == nil && left > 0 {
		return min(left, t.c.pace.attempt)
	}
	return t.c.pace.attempt
}

// update notes how the record was last seen.
func (t *Term) update(rec kv.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec = rec
}

// extend trusts the lease anew, from the send of a refresh that the store
// granted. What has run out is not brought back, though nobody may have noticed
// yet.
func (t *Term) extend(rec kv.Record, sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec = rec
	if t.cause == nil && t.trust.left(t.c.clock()) > 0 {
		t.trust, t.proved = trust{sent: sent, span: rec.TTL - t.c.pace.margin}, true
	}
}

// futile reports whether the term was lost without a single refresh that succeeded: the
// store takes claims, and nothing after them, as one whose disk is full may.
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
	c.term.kill(cause) // whoever ended the term may not have come to that yet
	return c.Context.Err()
}
