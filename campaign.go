package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

	draft   kv.Record // the signature, value and TTL that it tries to put in
	asked   bool      // a create was sent: our record may be there, now or later
	unknown bool      // the last create had no clear answer: look before the next
	since   instant   // when the first create was sent that our record may be of
	found   kv.Record // our own record, seen in the safe though no create told us
	trouble error     // the last error of the store or of the health check
}

func (c *Candidate) campaign(ctx, base context.Context, s stand) (*Term, error) {
	cm := &campaign{
		Candidate: c,
		base:      base,
		stand:     s,
		draft:     kv.Record{Signature: newSignature(c.opts.ID), Value: c.opts.Value, TTL: c.opts.TTL},
	}
	c.log.DebugContext(ctx, "campaigning")
	term, err := cm.run(ctx)
	if err == nil {
		return term, nil
	}
	cm.withdraw(ctx)
	if cm.trouble != nil && !errors.Is(err, cm.trouble) {
		return nil, fmt.Errorf("election: campaign for %q: %w (last trouble: %w)", c.name, err, cm.trouble)
	}
	return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
}

// run waits for a vacancy and claims it, until that succeeds or ctx ends.
func (c *campaign) run(ctx context.Context) (*Term, error) {
	latest, stop := c.sightings(ctx)
	defer stop()
	rested := time.Now().Add(c.stand.rest)
	retry := c.pace.backoff()
	claim := time.NewTimer(0)
	claim.Stop()
	defer claim.Stop()
	for waited := false; ; {
		select {
		case <-ctx.Done():
			return nil, causeOf(ctx)
		case s := <-latest:
			switch {
			case s.err == nil && s.rec.Signature == c.draft.Signature && !s.rec.Foreign:
				c.found = s.rec
				claim.Reset(0)
			case s.err == nil:
				c.held(ctx, s.rec)
				waited = true
				claim.Stop()
			case errors.Is(s.err, kv.ErrVacant):
				retry.reset()
				c.found = kv.Record{}
				claim.Reset(max(c.hesitation(waited), time.Until(rested)))
			case errors.Is(s.err, kv.ErrInvalid):
				return nil, s.err
			default:
				c.fault(ctx, "cannot watch the safe", s.err)
			}
		case <-claim.C:
			term, err := c.claim(ctx)
			if term != nil {
				return term, nil
			}
			if errors.Is(err, kv.ErrInvalid) {
				return nil, err
			}
			claim.Reset(retry.pause())
		}
	}
}

// hesitation spreads the claims of candidates that all saw the leader go, so
// that most of them see the next one before they ask.
func (c *campaign) hesitation(waited bool) time.Duration {
	if !waited {
		return 0
	}
	return rand.N(c.pace.spread + 1)
}

// healthy asks the health check, if there is one.
func (c *Candidate) healthy(ctx context.Context) error {
	if c.opts.Health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	if err := c.opts.Health(ctx); err != nil {
		return fmt.Errorf("unhealthy: %w", err)
	}
	return nil
}

// held reports who is waited for.
func (c *campaign) held(ctx context.Context, rec kv.Record) {
	c.trouble = nil
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

// fault keeps the last trouble, and reports it if it is a new one.
func (c *campaign) fault(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if c.trouble == nil || c.trouble.Error() != err.Error() {
		c.log.WarnContext(ctx, what, "error", err)
	}
	c.trouble = err
}

// causeOf returns an error that is both a context's error and its cause.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
