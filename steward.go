package election

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/electkv/election/kv"
)

// A steward watches on a leader's behalf who is next, and ends the term when it is
// time to give way.
type steward struct {
	*Term
	heir    kv.Record // who is next, zero if nobody is
	since   time.Time // when that was first seen
	trouble complaint // of the log
}

// aides returns who helps a leader beside the keeper.
func (c *campaign) aides(m mandate) []aide {
	var as []aide
	if c.stand.heir != nil {
		as = append(as, func(ctx context.Context, t *Term) { c.until(ctx, t, "give the heir's place up", t.place.leave) })
	}
	if c.stand.heir.signed(m.rec) && (c.inLine() || c.unsure) { // handed over while it stood in line, under another signature
		as = append(as, func(ctx context.Context, t *Term) { c.until(ctx, t, "give the place in line up", c.quit) })
	}
	if c.opts.Succession != nil && c.place.Owns(m.rec) { // the note is as old as the place
		n := c.briefLeader(note{Since: time.Now().UnixMilli()})
		as = append(as, func(ctx context.Context, t *Term) { t.renew(ctx, n) })
	}
	if c.opts.Succession != nil {
		as = append(as, func(ctx context.Context, t *Term) { (&steward{Term: t}).watch(ctx) })
	}
	if c.opts.Succession != nil || c.opts.Requests {
		as = append(as, func(ctx context.Context, t *Term) { t.heed(ctx) })
	}
	return as
}

// until does something as soon as the store lets it. What has the lease of the
// leader's record does not fade by itself while that is kept.
func (c *campaign) until(ctx context.Context, t *Term, what string, do func(context.Context) error) {
	retry := c.pace.backoff()
	var trouble complaint
	for ctx.Err() == nil {
		err := c.attempt(ctx, do)
		if err == nil {
			return
		}
		if ctx.Err() == nil && trouble.due(err) {
			c.log.Warn("cannot "+what, "token", t.token, "error", err)
		}
		sleep(ctx, retry.pause())
	}
}

// renew publishes since when the leader leads, and the strikes that count by now.
func (t *Term) renew(ctx context.Context, now note) {
	err := t.publish(ctx, func(rec *kv.Record) {
		n := noteOf(*rec)
		n.Since, n.Strikes = now.Since, now.Strikes
		rec.Note = n.text()
	})
	if err != nil && t.Err() == nil {
		t.c.log.Warn("cannot tell whether strikes are published", "error", err)
	}
}

// watch gives way when it is time to, until ctx or the term ends.
func (s *steward) watch(ctx context.Context) {
	latest, stop := s.c.seat(heirSafe(s.c.name), heirship).sightings(ctx)
	defer stop()
	due := time.NewTimer(math.MaxInt64)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		case seen := <-latest:
			s.see(seen)
		case <-due.C:
		}
		due.Reset(s.giveWay(ctx))
	}
}

// see takes in who is next.
func (s *steward) see(seen sighting) {
	switch {
	case errors.Is(seen.err, kv.ErrVacant), seen.err == nil && !s.succeededBy(seen.rec):
		s.heir = kv.Record{}
	case seen.err != nil: // who it is is known from before
		if s.trouble.due(seen.err) {
			s.c.log.Warn("cannot see who is heir", "error", seen.err)
		}
	case seen.rec.Owns(s.heir):
		s.heir = seen.rec
	default:
		s.heir, s.since = seen.rec, time.Now()
	}
}

// giveWay ends the term if there is an heir that has been so for long enough, and
// comes before the leader, or if the term is as long as it may be, provided that the
// heir is alive. Or else it returns when to ask again.
func (s *steward) giveWay(ctx context.Context) time.Duration {
	if s.heir.Signature == "" {
		return math.MaxInt64
	}
	next, now := Contender{ID: idOf(s.heir.Signature), Rank: noteOf(s.heir).Rank}, time.Now()
	var due time.Time
	var cause error
	mine := reignOf(s.Record())
	if me := mine.contender(); s.c.opts.Succession(me, next, me) {
		due = s.since.Add(probation(s.c.opts.Stability, mine.Strikes[next.ID]))
		cause = fmt.Errorf("%w: gives way to %q", ErrResigned, next.ID)
	}
	if most := s.c.opts.MaxTerm; most > 0 && (cause == nil || s.began.Add(most).Before(due)) {
		due = s.began.Add(most)
		cause = fmt.Errorf("%w: has led for as long as a term may last", ErrResigned)
	}
	switch {
	case cause == nil:
		return math.MaxInt64
	case due.After(now):
		return due.Sub(now)
	}
	s.yield(ctx, next.ID, cause)
	return s.c.opts.TTL
}

// yield ends the term if the heir answers a call: nobody has to give way to one that
// is dead, though its record has not faded. If another of that ID answers, one that
// was restarted, it has not been heir for long, and is to be one like any other.
func (s *steward) yield(ctx context.Context, id string, cause error) {
	rec, err := s.summon(ctx, id)
	if err == nil && noteOf(rec).Formerly != s.heir.Signature {
		err = errors.New("it was restarted meanwhile")
		s.dismiss(ctx, rec)
	}
	if err != nil && s.Err() == nil {
		s.c.log.Warn("the heir does not take over", "heir", id, "error", err)
	}
	if err == nil {
		s.end(cause)
	}
}

// dismiss takes the place of an heir away.
func (t *Term) dismiss(ctx context.Context, rec kv.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.c.pace.attempt/3)
	defer cancel()
	if err := gone(t.c.store.Delete(ctx, heirSafe(t.c.name), rec)); err != nil {
		t.c.log.Warn("cannot tell whether the heir's place is open again", "error", err)
	}
}
