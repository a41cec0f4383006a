package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// With Options.Hold, the candidate that is elected puts a record into a safe beside the
// leader's before its work begins. That record is neither refreshed nor deleted once the
// work has begun: it expires. Until then any candidate that is elected waits.

// ErrNoHold means that no hold keeps the election closed beyond its leader's term.
var ErrNoHold = errors.New("election: no hold")

// A Hold is what keeps an election closed (Options.Hold), as an observer sees it.
type Hold struct {
	ID    string    // the candidate whose work began; empty if foreign
	Since time.Time // when it closed the election, by its own wall clock. Zero if unknown
	Until time.Time // about when the hold ends, by the same clock. Zero if unknown

	// Foreign is set if the record there was not written by this library. It
	// keeps the election closed as long as it is there.
	Foreign bool
}

// CurrentHold returns the hold that keeps the election closed beyond its leader's term, or
// ErrNoHold. The answer may be out of date when it returns.
func CurrentHold(ctx context.Context, store kv.Store, name string) (Hold, error) {
	if err := checkReserved(name); err != nil {
		return Hold{}, err
	}
	rec, err := store.Get(ctx, holdSafe(name))
	switch {
	case errors.Is(err, kv.ErrVacant):
		return Hold{}, ErrNoHold
	case err != nil:
		return Hold{}, fmt.Errorf("election: hold of %q: %w", name, err)
	}
	return holdOf(rec), nil
}

func holdOf(rec kv.Record) Hold {
	if rec.Foreign {
		return Hold{Foreign: true}
	}
	h := Hold{ID: machine.IDOf(rec.Signature), Since: sinceOf(machine.NoteOf(rec))}
	if !h.Since.IsZero() && !rec.Permanent {
		h.Until = h.Since.Add(rec.TTL)
	}
	return h
}

// err returns an ErrHeld that says who has closed the election, and until when.
func (h Hold) err() error {
	switch {
	case h.Foreign:
		return fmt.Errorf("%w: a lock that this library did not write is where holds belong", ErrHeld)
	case h.Until.IsZero():
		return fmt.Errorf("%w: %q has closed the election", ErrHeld, h.ID)
	}
	return fmt.Errorf("%w: %q has closed the election until about %s", ErrHeld, h.ID, h.Until.Format(time.RFC3339))
}

// ttlOf returns the TTL of the record that keeps a hold. The record counts from when
// its request was sent, the hold from when the work begins.
func ttlOf(hold time.Duration, p pace) time.Duration { return hold + p.Attempt }

// checkHold refuses a hold that the store cannot keep.
func checkHold(store kv.Store, hold time.Duration, p pace) error {
	switch {
	case hold < 0:
		return fmt.Errorf("election: hold %v is negative: leave it out for none", hold)
	case hold == 0:
		return nil
	}
	if _, err := store.Lifetime(ttlOf(hold, p)); err != nil {
		return fmt.Errorf("election: hold %v, which takes a record with a TTL of %v: %w", hold, ttlOf(hold, p), err)
	}
	return nil
}

// elect campaigns until the candidate leads, and has closed the election to others if
// the options ask for that.
func (c *Candidate) elect(ctx, base context.Context, s entry) (*Term, error) {
	term, err := c.campaign(ctx, base, s)
	c.flush() // the hook for roles is called before the work begins, and no hold waits for that
	if err != nil || c.opts.Hold == 0 {
		return term, err
	}
	return c.shut(ctx, base, s, term)
}

// shut closes the election to others under a new term, or under those that the candidate wins
// after it.
func (c *Candidate) shut(ctx, base context.Context, s entry, term *Term) (*Term, error) {
	var left []string
	for futile := 0; ; {
		var err error
		cl := c.closing()
		cl.left = left
		if err = cl.close(ctx, term); err == nil {
			return term, nil
		}
		left = cl.left
		c.free(ctx, term, ReasonResigned)
		if futile++; !term.futile() {
			futile = 0
		}
		if ctx.Err() != nil || errors.Is(err, kv.ErrInvalid) {
			c.flush()
			return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
		}
		s.rest = 2*c.pace.Spread + c.pace.futility(futile)
		term, err = c.campaign(ctx, base, s)
		if c.flush(); err != nil {
			return nil, err
		}
	}
}

// openNow returns an ErrHeld if a hold keeps the election closed, so that a candidate
// that does not wait need not be elected to learn that. It ignores a hold that should be
// over by our wall clock: if it is not over, the create of our own hold is refused. Some
// stores find out that a record has expired only when they are asked to write.
func (c *Candidate) openNow(ctx context.Context) error {
	if c.opts.Hold == 0 {
		return nil
	}
	return c.attempt(ctx, func(ctx context.Context) error {
		h, err := CurrentHold(ctx, c.observed(), c.name)
		switch {
		case errors.Is(err, ErrNoHold):
			return nil
		case err != nil:
			return err
		case !h.Until.IsZero() && time.Now().After(h.Until):
			return nil
		}
		return h.err()
	})
}

// closeNow closes the election under a new term, or gives the term up. It does not wait for
// another hold to end, and tries for no longer than a request may take.
func (c *Candidate) closeNow(ctx context.Context, term *Term) (*Term, error) {
	if c.opts.Hold == 0 {
		return term, nil
	}
	bounded, cancel := context.WithTimeout(ctx, c.pace.Attempt)
	defer cancel()
	cl := c.closing()
	cl.hasty = true
	if err := cl.close(bounded, term); err != nil {
		c.free(ctx, term, ReasonResigned)
		return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
	}
	return term, nil
}

// A closing closes an election under one term.
type closing struct {
	*Candidate // with the safe of holds as its safe
	hasty      bool

	draft   kv.Record // what it tries to put there
	doubt   bool      // a create had no clear answer: the record may come, now or later
	left    []string  // signatures of our own holds without work that may still be there
	trouble complaint
}

func (c *Candidate) closing() *closing {
	return &closing{
		Candidate: c.beside(holdSafe(c.name), "hold"),
		draft: kv.Record{
			Signature: newSignature(c.opts.ID),
			Note:      machine.Note{Since: time.Now().UnixMilli()}.Text(),
			TTL:       ttlOf(c.opts.Hold, c.pace),
			Lasting:   true,
		},
	}
}

// close returns nil when the election is closed for Options.Hold from now on, and the
// term goes on. If it returns an error no work may begin, and it has removed what it put into
// the store, if the store answers. It does not use the signature again: a late delete must
// not find a record that still counts.
func (cl *closing) close(ctx context.Context, term *Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(term.ctx.Context, func() { cancel(term.Err()) })()
	err := cl.run(ctx)
	switch {
	case err == nil && ctx.Err() != nil:
		err = causeOf(ctx)
	case err == nil:
		err = term.Err()
	}
	if err != nil {
		cl.reopen(ctx)
		return err
	}
	cl.newest.Store(term)
	life, _ := cl.store.Lifetime(cl.draft.TTL) // for which New has asked
	cl.log.InfoContext(ctx, "closed to others", "event", "closed", "token", term.Token(), "hold", cl.opts.Hold, "at_most", life.Max)
	return nil
}

// run tries until the hold is in the store, or ctx ends.
func (cl *closing) run(ctx context.Context) error {
	retry := cl.pace.backoff()
	for {
		err := cl.put(ctx)
		switch {
		case err == nil, errors.Is(err, kv.ErrInvalid), cl.hasty && errors.Is(err, ErrHeld):
			return err
		case errors.Is(err, ErrHeld):
			cl.await(ctx, err)
		case ctx.Err() == nil && cl.trouble.due(err):
			cl.log.WarnContext(ctx, "cannot tell whether the election is closed to others", "event", "closed_unclear", "error", err)
		}
		sleep(ctx, retry.pause())
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the work has not begun: %w", causeOf(ctx), err)
		}
	}
}

// put makes one attempt. After an answer that was not clear our record may be there:
// then the next create finds it, and a refresh starts its TTL anew. The requests go on
// for a while when ctx ends: it takes their answers to know what there is to remove.
func (cl *closing) put(ctx context.Context) error {
	ctx, stop := outlasting(ctx, cl.pace.Attempt/2)
	defer stop()
	var rec kv.Record
	sent := cl.clock.now()
	err := cl.attempt(ctx, func(ctx context.Context) (err error) {
		rec, err = cl.observed().Create(ctx, cl.name, cl.draft)
		return err
	})
	cl.doubt = cl.doubt || err != nil && !errors.Is(err, kv.ErrHeld) && !errors.Is(err, kv.ErrInvalid)
	if errors.Is(err, kv.ErrHeld) {
		if rec, err = cl.look(ctx); err != nil {
			return err
		}
		sent = cl.clock.now()
		err = cl.attempt(ctx, func(ctx context.Context) (err error) {
			rec, err = cl.observed().Refresh(ctx, cl.name, rec)
			return err
		})
	}
	if err != nil {
		return err
	}
	if (machine.Trust{Sent: sent, Span: rec.TTL - cl.opts.Hold}).Left(cl.clock.now()) < 0 {
		return errLate // the next attempt refreshes it
	}
	return nil
}

// look returns what is there if it is ours, else an ErrHeld that says whose it is.
func (cl *closing) look(ctx context.Context) (rec kv.Record, _ error) {
	err := cl.attempt(ctx, func(ctx context.Context) (err error) {
		rec, err = cl.observed().Get(ctx, cl.name)
		return err
	})
	switch {
	case errors.Is(err, kv.ErrVacant): // it has just expired, or the store keeps the safe closed
		return rec, ErrHeld
	case err != nil:
		return rec, err
	case !rec.Foreign && slices.Contains(cl.left, rec.Signature):
		return rec, cl.remove(ctx, rec)
	case !cl.mine(rec):
		return rec, holdOf(rec).err()
	}
	return rec, nil
}

// errLeft is why a hold is put again.
var errLeft = errors.New("election: a hold of our own, under which no work began, was in the way")

// remove removes a hold that we left behind, and returns why ours is not there yet.
func (cl *closing) remove(ctx context.Context, rec kv.Record) error {
	return cl.attempt(ctx, func(ctx context.Context) error {
		if err := gone(cl.observed().Delete(ctx, cl.name, rec)); err != nil {
			return err
		}
		return errLeft
	})
}

func (cl *closing) mine(rec kv.Record) bool {
	return !rec.Foreign && rec.Signature == cl.draft.Signature
}

// await returns when a watch shows that no other candidate has a hold, or when ctx ends.
func (cl *closing) await(ctx context.Context, why error) {
	cl.log.InfoContext(ctx, "waiting until the election is open", "event", "waiting_for_hold", "reason", why)
	latest, stop := cl.sightings(ctx)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-latest:
			switch {
			case errors.Is(s.err, kv.ErrVacant), errors.Is(s.err, kv.ErrInvalid), s.err == nil && cl.mine(s.rec):
				return
			case s.err != nil && cl.trouble.due(s.err):
				cl.log.WarnContext(ctx, "cannot see whether the election is open", "event", "hold_not_seen", "error", s.err)
			}
		}
	}
}

// errMayCome is why a closing that is given up looks again.
var errMayCome = errors.New("election: a request without a clear answer may still be carried out")

// reopen removes a hold under which no work has begun. If a create had no clear answer,
// it looks until its time is up. If the store does not answer, the hold stays until it expires.
func (cl *closing) reopen(ctx context.Context) {
	err := cl.insist(ctx, func(ctx context.Context) error {
		rec, err := cl.observed().Get(ctx, cl.name)
		switch {
		case err == nil && cl.mine(rec):
			return gone(cl.observed().Delete(ctx, cl.name, rec))
		case errors.Is(err, kv.ErrVacant) && cl.doubt:
			return errMayCome
		case errors.Is(err, kv.ErrVacant):
			return nil
		}
		return err
	})
	if err != nil {
		cl.left = append(cl.left, cl.draft.Signature)
		cl.log.WarnContext(ctx, "no work has begun, but a hold may be left in the store until it expires", "event", "hold_may_be_left", "error", err)
	}
}
