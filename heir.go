package election

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/electkv/election/kv"
)

// Where there is a succession, a campaign has two steps. The candidate bids for the
// heir's safe first; as heir it keeps that safe as a leader does its own, and
// campaigns for the leader's. So a leader's end wakes one process.

// An heir is a candidate that holds the heir's safe.
type heir struct {
	term *Term
	told chan reign // who leads, as the heir was told last
}

// succeed campaigns as heir, and to be heir.
func (c *Candidate) succeed(ctx, base context.Context, s stand) (*Term, error) {
	formerly, rest := "", time.Duration(0)
	if s.rest > 0 {
		rest = s.rest + c.pace.crowd
	}
	retry := c.pace.backoff() // of those who displace each other, as no order would
	for shy := time.Duration(0); ; rest = 2*c.pace.spread + c.pace.crowd {
		bid := c.seat(heirSafe(c.name), heirship).enter(base, stand{rest: rest, bid: true, formerly: formerly, shy: shy})
		m, err := bid.run(ctx)
		if err != nil {
			bid.withdraw(ctx)
			return nil, bid.over(err)
		}
		h := bid.inWaiting(ctx, m)
		cm := c.enter(base, stand{rest: bid.courtesy(), drain: s.drain, heir: h})
		m, err = cm.runWhile(ctx, h)
		if err == nil {
			return cm.win(ctx, m), nil
		}
		formerly = h.term.Record().Signature
		c.free(ctx, h.term) // first, so that nothing is handed over to it any more
		cm.withdraw(ctx)
		if ctx.Err() != nil || errors.Is(err, kv.ErrInvalid) {
			return nil, cm.over(err)
		}
		if time.Since(h.term.began) > c.opts.TTL {
			retry.reset()
		}
		shy = retry.pause()
	}
}

// inWaiting begins the term of an heir. Its record is kept until the term ends, not
// until it is released: an heir that hangs must not keep the place.
func (c *campaign) inWaiting(ctx context.Context, m mandate) *heir {
	c.log.InfoContext(ctx, c.office.won(), "token", m.rec.Token)
	h := &heir{told: make(chan reign, 1)}
	h.term = newTerm(context.WithoutCancel(c.base), c.Candidate, m, stand{}, h.mirror, h.look)
	c.roles.is(RoleHeir)
	return h
}

// runWhile campaigns until ctx ends or h is heir no more.
func (c *campaign) runWhile(ctx context.Context, h *heir) (mandate, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.term.ctx.Context, func() { cancel(h.term.Err()) })()
	return c.run(ctx)
}

// signed reports whether a record in the leader's safe has the heir's signature:
// the leader has handed over.
func (h *heir) signed(rec kv.Record) bool {
	return h != nil && !rec.Foreign && rec.Signature == h.term.Record().Signature
}

// leave gives up the heir's place, of which a leader has no need. It can be called
// again after an error.
func (h *heir) leave(ctx context.Context) error {
	if h == nil {
		return nil
	}
	h.term.end(ErrResigned)
	_, err := h.term.release(ctx)
	return err
}

// vacant notes that nobody leads.
func (h *heir) vacant() {
	if h != nil {
		h.term.c.chronicle.vacant()
		h.tell()
	}
}

// sees notes who leads.
func (h *heir) sees(rec kv.Record) {
	if h == nil {
		return
	}
	if !rec.Foreign {
		h.term.c.chronicle.leads(reignOf(rec))
	}
	h.tell()
}

// tell has the mirror tell who led last.
func (h *heir) tell() {
	select {
	case <-h.told: // told to nobody, and now out of date
	default:
	}
	h.told <- h.term.c.chronicle.latest()
}

// giveUp ends the term of an heir that could not lead.
func (h *heir) giveUp(err error) {
	if h != nil && h.term.Err() == nil {
		h.term.end(fmt.Errorf("%w: %w", ErrResigned, err))
		h.term.c.log.Warn("cannot be heir", "error", err)
	}
}

// mirror keeps the heir's note up to date with who leads. All others learn that from
// there.
func (h *heir) mirror(ctx context.Context, t *Term) {
	retry := t.c.pace.backoff()
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	var now reign
	var trouble complaint
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.ctx.Done():
			return
		case now = <-h.told:
		case <-again.C:
		}
		under := func(rec *kv.Record) {
			n := noteOf(*rec)
			n.Under = &now
			rec.Note = n.text()
		}
		rec := t.Record()
		if under(&rec); rec == t.Record() {
			continue
		}
		err := t.publish(ctx, under)
		if err == nil {
			retry.reset()
			continue
		}
		if t.Err() == nil && trouble.due(err) {
			t.c.log.Warn("cannot tell the others who leads", "error", err)
		}
		if !errors.Is(err, kv.ErrInvalid) {
			again.Reset(retry.pause())
		}
	}
}

// look ends the term of an heir that cannot see the leader's safe, though it can keep
// its own record: while it has the place nobody else looks after the leader.
func (h *heir) look(ctx context.Context, t *Term) {
	seen := time.Now()
	ticker := time.NewTicker(t.c.pace.refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.ctx.Done():
			return
		case <-ticker.C:
		}
		err := t.c.attempt(ctx, func(ctx context.Context) error {
			_, err := t.c.store.Get(ctx, t.c.election)
			return err
		})
		switch {
		case err == nil, errors.Is(err, kv.ErrVacant):
			seen = time.Now()
		case time.Since(seen) > t.c.opts.TTL:
			h.giveUp(fmt.Errorf("cannot see the leader's safe: %w", err))
		}
	}
}

// inherit takes over a safe that the leader has handed over to us. When it did so
// is not known, so the record is refreshed, and trusted from there. The store may
// have begun to end a record whose lease is older than the TTL, and grant a refresh
// all the same; our term as heir, which the same lease keeps, must not have been
// broken.
func (c *campaign) inherit(ctx context.Context, rec kv.Record) (mandate, error) {
	c.handed = rec
	if err := c.healthy(ctx); err != nil {
		c.fault(ctx, "not healthy enough to lead", err)
		c.stand.heir.giveUp(err)
		return mandate{}, err
	}
	attempt, cancel := context.WithTimeout(ctx, c.pace.attempt)
	defer cancel()
	sent := c.clock()
	got, err := c.store.Refresh(attempt, c.name, rec)
	switch {
	case errors.Is(err, kv.ErrStale):
		c.handed = kv.Record{}
		return mandate{}, errWait
	case err != nil:
		c.fault(ctx, "cannot tell whether the safe that was handed over is held", err)
		return mandate{}, err
	case c.stand.heir.term.Err() != nil:
		c.late = got
		return mandate{}, errLate
	}
	return c.accept(got, sent)
}

// weigh looks at whoever holds the safe: at the leader as its heir, or at an heir
// that may be to be displaced.
func (c *campaign) weigh(rec kv.Record) {
	c.stand.heir.sees(rec)
	c.overtake(rec)
	if c.stand.bid && c.displaces(rec) {
		c.prey = rec
		c.next.Reset(c.deference())
	}
}

// displaces reports whether we come before an heir, and are to take its place.
func (c *campaign) displaces(rec kv.Record) bool {
	if rec.Foreign || rec.Permanent {
		return false
	}
	n := noteOf(rec)
	switch {
	case n.Calls != "":
		return n.Calls == c.opts.ID
	case n.Under == nil: // it does not know itself who leads
		return false
	}
	c.chronicle.hear(*n.Under)
	if n.called() || n.Under.ID == c.opts.ID { // our own term, which has ended early: others first
		return false
	}
	heir := Contender{ID: idOf(rec.Signature), Rank: n.Rank}
	return c.opts.Succession(n.Under.contender(), Contender{ID: c.opts.ID, Rank: c.opts.Rank}, heir)
}

// deference spreads the bids of candidates, the longer the lower they rank, so that
// those who rank lower mostly find that another has come before them. It is the
// delay δ of the candidate/ordinary algorithm. Who is called comes at once. Where an
// heir has gone, a crowd may wait; where none was seen, only those may be there who
// have just come as well.
func (c *campaign) deference() time.Duration {
	switch {
	case noteOf(c.prey).Calls != "":
		return 0
	case c.prey.Signature != "":
		return c.lag() + c.pace.jitter(c.lag()+1) + c.stand.shy
	case c.waited: // a leader has just been elected: there is time
		return (c.lag() + c.pace.jitter(c.pace.crowd+1)) >> c.overtaken
	case c.mayFollow():
		return c.lag() + c.pace.jitter(c.lag()+1)
	}
	return 0
}

// mayFollow reports whether the order may put somebody before us of whom we do not know
// yet. It asks for contenders at the ends of all IDs and ranks.
func (c *campaign) mayFollow() bool {
	last, me := c.chronicle.latest().contender(), Contender{ID: c.opts.ID, Rank: c.opts.Rank}
	for _, id := range []string{"\x00", "\U0010ffff"} {
		for _, rank := range []int{math.MinInt, math.MaxInt} {
			if c.opts.Succession(last, Contender{ID: id, Rank: rank}, me) {
				return true
			}
		}
	}
	return false
}

// lag is the least that candidates of our rank wait where others may wait too.
func (c *campaign) lag() time.Duration {
	return c.pace.spread / time.Duration(1+max(c.opts.Rank, 0))
}

// overtake notes whether somebody has taken the heir's place who had not waited for
// it: a program that campaigns again and again, whose work is done at once, say. A
// candidate that waits bids twice as soon after each of those, or it would wait for ever.
func (c *campaign) overtake(rec kv.Record) {
	switch {
	case c.vacated.IsZero():
		return
	case noteOf(rec).Waited, time.Since(c.vacated) > c.lag():
		c.overtaken = 0
	default:
		c.overtaken = min(c.overtaken+1, 30)
	}
	c.vacated = time.Time{}
}

// courtesy is for how long a new heir leaves a vacancy of the leader's safe to those
// who may come before it.
func (c *campaign) courtesy() time.Duration {
	if !c.waited && !c.mayFollow() {
		return 0
	}
	return 2 * c.pace.spread
}

// role is what the candidate is while it stands so.
func (s stand) role() Role {
	if s.heir != nil {
		return RoleHeir
	}
	return RoleCandidate
}

// brief writes the note that goes with the next claim.
func (c *campaign) brief() {
	n := note{Rank: c.opts.Rank, Heirs: c.opts.Heirs, Since: time.Now().UnixMilli()}
	switch {
	case c.opts.Succession == nil: // only since when, which is for people
		n = note{Since: n.Since}
	case !c.stand.bid:
		n = c.briefLeader(n)
	default: // who leads, the heir that is displaced has told, if there is one
		n.Waited = c.waited
		prey := noteOf(c.prey)
		if n.Under = prey.Under; prey.Calls != "" && n.Under != nil {
			n.Called, n.Formerly = n.Under.Token, c.stand.formerly
		}
	}
	c.draft.Note = n.text()
}

// briefLeader adds what goes from leader to leader.
func (c *campaign) briefLeader(n note) note {
	if len(n.Heirs) == 0 {
		n.Heirs = c.chronicle.latest().Heirs
	}
	var fading time.Duration
	if life, err := c.store.Lifetime(c.opts.TTL); err == nil {
		fading = life.Max
	}
	n.Strikes = c.chronicle.strikes(c.opts.Stability, c.opts.TTL, fading)
	return n
}
