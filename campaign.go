package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/kv"
)

// Campaign waits until the candidate is elected and returns its term. The
// caller must call Term.Resign once its work has stopped, also if the term was
// lost; Run does that by itself.
//
// ctx bounds the campaign only, never the term; its values are in the term's
// context. When ctx ends, or the store can never do what is asked (kv.ErrInvalid),
// Campaign returns an error that wraps the reason and the last trouble with the
// store, if there was any; a record that it may have written meanwhile is
// removed, within a third of the TTL if the store answers.
func (c *Candidate) Campaign(ctx context.Context) (*Term, error) {
	return c.campaign(ctx, context.WithoutCancel(ctx), stand{})
}

// A stand is how a campaign begins and what its term will be like.
type stand struct {
	rest  time.Duration // leave a vacancy to the others for so long
	drain bool          // the lease is kept after the term's end, until released
}

// A campaign is one attempt of a candidate to be elected.
type campaign struct {
	*Candidate
	base  context.Context // parent of the term's context
	stand stand

	draft kv.Record // the signature, value and TTL that it tries to put in
	asked bool      // a create was sent
	doubt bool      // a create had no clear answer: its record may be there, now or later
	since instant   // when the first such create was sent
	late  kv.Record // our own record, which is to be removed

	next   *time.Timer // when to claim
	retry  backoff     // of claims that fail
	rested time.Time   // claim no vacancy before
	waited bool        // somebody held the safe

	trouble error     // the last error of the store or of the health check
	holder  kv.Record // whom the log says that we wait for
	told    string    // what trouble the log told of last,
	toldAt  time.Time // and when
}

func (c *Candidate) campaign(ctx, base context.Context, s stand) (*Term, error) {
	cm := &campaign{
		Candidate: c,
		base:      base,
		stand:     s,
		draft:     kv.Record{Signature: newSignature(c.opts.ID), Value: c.opts.Value, TTL: c.opts.TTL},
	}
	c.log.DebugContext(ctx, "campaigning")
	m, err := cm.run(ctx)
	if err == nil {
		c.log.InfoContext(ctx, "elected", "token", m.rec.Token)
		return newTerm(base, c, m, s.drain), nil
	}
	cm.withdraw(ctx)
	if cm.trouble != nil && !errors.Is(err, cm.trouble) {
		return nil, fmt.Errorf("election: campaign for %q: %w (last trouble: %w)", c.name, err, cm.trouble)
	}
	return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
}

// run waits for a vacancy and claims it, until that succeeds or ctx ends. The
// term begins when its watch has ended: were that to hang, nobody would keep the
// lease of a leader that cannot lead.
func (c *campaign) run(ctx context.Context) (mandate, error) {
	latest, stop := c.sightings(ctx)
	defer stop()
	c.rested = time.Now().Add(c.stand.rest)
	c.retry = c.pace.backoff()
	c.next = time.NewTimer(0)
	c.next.Stop()
	defer c.next.Stop()
	for ctx.Err() == nil {
		m, err := c.step(ctx, latest)
		if err == nil || errors.Is(err, kv.ErrInvalid) {
			return m, err
		}
		c.schedule(err)
	}
	return mandate{}, causeOf(ctx)
}

// errWait means that there is nothing to do until a watch shows something else.
var errWait = errors.New("election: waiting")

// step does whatever is next: look at what the watch shows, or claim.
func (c *campaign) step(ctx context.Context, latest <-chan sighting) (mandate, error) {
	select {
	case <-ctx.Done():
		return mandate{}, errWait
	case s := <-latest:
		return c.see(ctx, s)
	case <-c.next.C:
		return c.claim(ctx)
	}
}

// see takes in a sighting of the safe.
func (c *campaign) see(ctx context.Context, s sighting) (mandate, error) {
	switch {
	case s.err == nil && c.mine(s.rec):
		return c.adopt(s.rec)
	case s.err == nil:
		c.held(ctx, s.rec)
		c.waited, c.late = true, kv.Record{}
		c.next.Stop()
	case errors.Is(s.err, kv.ErrVacant):
		c.late = kv.Record{}
		c.retry.reset()
		c.next.Reset(max(c.hesitation(), time.Until(c.rested)))
	case errors.Is(s.err, kv.ErrInvalid):
		return mandate{}, s.err
	default:
		c.fault(ctx, "cannot watch the safe", s.err)
	}
	return mandate{}, errWait
}

// schedule sets the time of the next claim after one that failed.
func (c *campaign) schedule(err error) {
	switch {
	case errors.Is(err, errWait):
	case !errors.Is(err, errLate):
		c.next.Reset(c.retry.pause())
	case c.late.Signature != "": // to be removed
		c.next.Reset(0)
	default: // removed: it is the others' turn
		c.rested = time.Now().Add(2 * c.pace.spread)
		c.next.Reset(2 * c.pace.spread)
	}
}

// hesitation spreads the claims of candidates that all saw the leader go, so
// that most of them see the next one before they ask.
func (c *campaign) hesitation() time.Duration {
	if !c.waited {
		return 0
	}
	return c.pace.jitter(c.pace.spread + 1)
}

// healthy asks the health check, if there is one.
func (c *Candidate) healthy(ctx context.Context) error {
	if c.opts.Health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	err := c.opts.Health(ctx)
	if err == nil {
		err = ctx.Err() // an answer that comes too late is none
	}
	if err != nil {
		return fmt.Errorf("unhealthy: %w", err)
	}
	return nil
}

// held reports who is waited for, if that is somebody else than before.
func (c *campaign) held(ctx context.Context, rec kv.Record) {
	c.trouble = nil
	if rec == c.holder || rec.Owns(c.holder) && rec.Permanent == c.holder.Permanent {
		return
	}
	c.holder = rec
	switch {
	case rec.Foreign && rec.Permanent:
		c.log.WarnContext(ctx, "waiting for a record that this library did not write and that never expires: if nobody holds that lock, remove it by hand", "value", rec.Value)
	case rec.Permanent:
		c.log.WarnContext(ctx, "waiting for a record whose expiry was taken away: if its owner is gone, remove it by hand", "leader", idOf(rec.Signature), "token", rec.Token)
	case rec.Foreign:
		c.log.InfoContext(ctx, "waiting for a holder that is not of this library", "value", rec.Value)
	default:
		c.log.InfoContext(ctx, "waiting", "leader", idOf(rec.Signature), "token", rec.Token)
	}
}

// sayAgain is how long the log is silent about trouble that goes on.
const sayAgain = time.Minute

// fault keeps the last trouble, and reports it if it is new, or goes on for long.
func (c *campaign) fault(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	c.trouble = err
	if text := err.Error(); text != c.told || time.Since(c.toldAt) >= sayAgain {
		c.told, c.toldAt = text, time.Now()
		c.log.WarnContext(ctx, what, "error", err)
	}
}

// insist tries again at what has to be done though ctx may have ended, for as
// long as one request may take.
func (c *Candidate) insist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.pace.attempt)
	defer cancel()
	retry := c.pace.backoff()
	err := do(ctx)
	for err != nil && ctx.Err() == nil {
		sleep(ctx, retry.pause())
		if ctx.Err() == nil {
			err = do(ctx)
		}
	}
	return err
}

// causeOf returns an error that is both a context's error and its cause.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
