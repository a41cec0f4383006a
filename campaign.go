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
// Campaign returns an error that wraps the reason, [ErrHeld] if somebody else had
// the safe when the store last told, and the last trouble with the store, if there
// was any since; a record that it may have written meanwhile is removed, within a
// third of the TTL if the store answers. A request that is on its way when ctx ends
// is waited for, for a sixth of the TTL at most, so that it is known what it did.
func (c *Candidate) Campaign(ctx context.Context) (*Term, error) {
	return c.elect(ctx, context.WithoutCancel(ctx), stand{})
}

// flush has what was said by now reach those who were to be told.
func (c *Candidate) flush() {
	c.roles.out.flush()
	c.logs.flush()
}

// TryCampaign makes one attempt to be elected, and waits for nobody. If somebody
// else has the safe, or a hold keeps the election closed (Options.Hold), the error
// matches [ErrHeld] and says whose it is, if the store tells; if the health check
// fails, it wraps that; after any other error the store's answer was not clear, or
// came too late, and what may have been written is removed, within a third of the
// TTL for each of the safe and the hold if the store answers. Each request has a
// third of the TTL, and ctx bounds them all. The term is like one of Campaign. A
// succession is not asked.
//
// Where observers judge expiry, one attempt alone never takes over from a leader that
// died: it has not watched the record.
func (c *Candidate) TryCampaign(ctx context.Context) (*Term, error) {
	term, err := c.try(ctx, context.WithoutCancel(ctx), stand{})
	if err != nil {
		c.flush()
	}
	return term, err
}

func (c *Candidate) try(ctx, base context.Context, s stand) (*Term, error) {
	if c.opts.Rank < 0 {
		return nil, fmt.Errorf("election: campaign for %q: %w", c.name, errBelowZero)
	}
	if err := c.openNow(ctx); err != nil {
		return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
	}
	cm := c.enter(base, s)
	m, err := cm.claim(ctx)
	if err == nil {
		term := cm.win(ctx, m)
		c.flush() // as in elect
		return c.closeNow(ctx, term)
	}
	defer c.roles.is(RoleOrdinary)
	switch {
	case errors.Is(err, kv.ErrHeld):
		return nil, fmt.Errorf("election: campaign for %q: %w (%w)", c.name, cm.whoHolds(ctx), err)
	case !errors.Is(err, kv.ErrInvalid):
		cm.withdraw(ctx)
	}
	return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
}

// A stand is how a campaign begins and what its term will be like.
type stand struct {
	rest  time.Duration // leave a vacancy to the others for so long
	drain bool          // the lease is kept after the term's end, until released
	heir  *heir         // by whom the safe is claimed, if it is as heir
	bid   bool          // it is the heir's safe that is campaigned for
	// formerly is the signature that we had as heir before, in a bid.
	formerly string
	shy      time.Duration // how much longer than others to wait before we displace an heir
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
	spent bool      // a create was refused under the present signature
	late  kv.Record // our own record, which is to be removed

	prey   kv.Record // another heir's, which is to be displaced
	handed kv.Record // our heir's signature, to which the safe was handed over

	next      *time.Timer // when to claim
	retry     backoff     // of claims that fail
	rested    time.Time   // claim no vacancy before
	waited    bool        // somebody held the safe
	vacated   time.Time   // since when nobody does, zero if somebody does
	overtaken int         // how often in a row somebody took the place who had not waited
	denied    int         // claims refused since a watch last told of anything
	failed    time.Time   // since when claims fail for other reasons, zero if they do not

	lines   kv.Queue    // the store, if its safes have lines
	place   kv.Record   // our own in line, zero if there is none that we know of
	unsure  bool        // there may be one under the present signature
	stayed  instant     // from when on it is to be trusted, once it is first
	behind  bool        // somebody else had the safe when a watch last told
	staying *time.Timer // when to join, or to say that we stay
	wait    backoff     // of that, when it fails

	trouble error     // the last error of the store or of the health check
	holder  kv.Record // whom the log says that we wait for
	told    complaint // what trouble the log told of last
}

func (c *Candidate) campaign(ctx, base context.Context, s stand) (*Term, error) {
	c.log.DebugContext(ctx, "campaigning")
	if c.opts.Rank < 0 {
		c.log.InfoContext(ctx, "does not stand: its rank is below zero")
		<-ctx.Done()
		return nil, fmt.Errorf("election: campaign for %q: %w (%w)", c.name, causeOf(ctx), errBelowZero)
	}
	c.roles.is(RoleCandidate)
	if c.opts.Succession != nil {
		return c.succeed(ctx, base, s)
	}
	cm := c.enter(base, s)
	m, err := cm.run(ctx)
	if err == nil {
		return cm.win(ctx, m), nil
	}
	cm.withdraw(ctx)
	return nil, cm.over(err)
}

// errBelowZero is why a candidate may never stand.
var errBelowZero = errors.New("a candidate whose rank is below zero never stands")

// over returns the error of a campaign that ends with err.
func (c *campaign) over(err error) error {
	c.roles.is(RoleOrdinary)
	if c.behind || c.denied > 0 {
		err = fmt.Errorf("%w; when last told, %w", err, c.office.heldBy(c.holder))
	}
	if c.trouble != nil && !errors.Is(err, c.trouble) {
		err = fmt.Errorf("%w (last trouble: %w)", err, c.trouble)
	}
	return fmt.Errorf("election: campaign for %q: %w", c.election, err)
}

// enter begins a campaign, under a signature of its own.
func (c *Candidate) enter(base context.Context, s stand) *campaign {
	lines, _ := c.store.(kv.Queue)
	if s.bid {
		lines = nil // whoever is to be heir, it is not by coming first
	}
	return &campaign{
		Candidate: c,
		base:      base,
		stand:     s,
		lines:     lines,
		draft:     kv.Record{Signature: newSignature(c.opts.ID), Value: c.opts.Value, TTL: c.opts.TTL},
	}
}

// win begins the term that the campaign was for.
func (c *campaign) win(ctx context.Context, m mandate) *Term {
	c.log.InfoContext(ctx, c.office.won(), "token", m.rec.Token)
	aides := c.aides(m) // of which one may ask who led before
	c.chronicle.leads(reignOf(m.rec))
	c.roles.is(RoleLeader)
	t := newTerm(c.base, c.Candidate, m, c.stand, aides...)
	if c.opts.Hold == 0 { // else when the election is closed to others
		c.newest.Store(t)
	}
	return t
}

// run waits for a vacancy and claims it, until that succeeds or ctx ends. The
// term begins when its watch has ended: were that to hang, nobody would keep the
// lease of a leader that cannot lead.
func (c *campaign) run(ctx context.Context) (mandate, error) {
	latest, stop := c.sightings(ctx)
	defer stop()
	c.rested = time.Now().Add(c.stand.rest)
	c.retry = c.pace.backoff()
	c.wait = c.pace.backoff()
	c.next, c.staying = time.NewTimer(0), time.NewTimer(0)
	c.next.Stop()
	c.staying.Stop()
	defer c.next.Stop()
	defer c.staying.Stop()
	for ctx.Err() == nil {
		m, err := c.step(ctx, latest)
		switch {
		case err == nil && ctx.Err() != nil: // won when nobody wanted it any more
		case err == nil, errors.Is(err, kv.ErrInvalid):
			return m, err
		default:
			c.schedule(err)
		}
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
	case <-c.staying.C:
		return c.queue(ctx)
	}
}

// see takes in a sighting of the safe.
func (c *campaign) see(ctx context.Context, s sighting) (mandate, error) {
	c.denied = 0
	if s.err == nil {
		c.failed = time.Time{}
	}
	switch {
	case s.err == nil && c.mine(s.rec):
		return c.adopt(ctx, s.rec)
	case s.err == nil && c.stand.heir.signed(s.rec):
		return c.inherit(ctx, s.rec)
	case s.err == nil:
		c.held(ctx, s.rec)
		c.waited, c.late, c.handed, c.prey = true, kv.Record{}, kv.Record{}, kv.Record{}
		c.next.Stop()
		c.lineUp()
		c.weigh(s.rec)
	case errors.Is(s.err, kv.ErrVacant):
		c.late, c.handed, c.prey, c.behind = kv.Record{}, kv.Record{}, kv.Record{}, false
		c.retry.reset()
		c.vacated = time.Now()
		c.stand.heir.vacant()
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
	switch {
	case c.stand.bid:
		return c.deference()
	case !c.waited || c.stand.heir != nil:
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
		return fmt.Errorf("%w: %w", errUnhealthy, err)
	}
	return nil
}

// errUnhealthy is why a candidate does not stand, or a term has ended, whose health
// check fails.
var errUnhealthy = errors.New("unhealthy")

// held reports who is waited for, if that is somebody else than before.
func (c *campaign) held(ctx context.Context, rec kv.Record) {
	c.trouble = nil
	if n := noteOf(rec); c.stand.bid && n.Calls != "" {
		c.log.DebugContext(ctx, "waiting for a candidate that is called to be heir", "called", n.Calls)
		return
	}
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
		c.log.InfoContext(ctx, "waiting", string(c.office), idOf(rec.Signature), "token", rec.Token)
	}
}

// refused reports that the safe is refused though no watch shows a holder. Once is
// what happens to those who come second; twice, the store keeps it closed, for the
// lock-delay of a session in Consul, say.
func (c *campaign) refused(ctx context.Context, err error) {
	if c.denied++; c.denied == 2 {
		c.log.InfoContext(ctx, "waiting for the store to open the safe", "reason", err)
	}
}

// fault keeps the last trouble, and reports it if it is new, or goes on for long.
func (c *campaign) fault(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	c.trouble = err
	if c.told.due(err) {
		c.log.WarnContext(ctx, what, "error", err)
	}
}

// insist tries again at what has to be done though ctx may have ended, for as
// long as one request may take.
func (c *Candidate) insist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.pace.attempt)
	defer cancel()
	return c.retry(ctx, do)
}

// retry tries again until ctx ends.
func (c *Candidate) retry(ctx context.Context, do func(context.Context) error) error {
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

// attempt makes one request, which has as long as any.
func (c *Candidate) attempt(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	return do(ctx)
}

// causeOf returns an error that is both a context's error and its cause.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
