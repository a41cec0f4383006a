package election

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// told is what a campaign has logged, and what it will report if it ends without a term.
type told struct {
	trouble error          // the last of the store or the health check
	last    *complaint     // what the log was told of that; nil if nothing yet
	holders [2]machine.Ref // the records that it waits for, by key
	failing [2]bool        // the last refresh had no clear answer
	claim   error          // the outcome of the last claim
	invalid error          // why the store can never do what it was asked last
	illness error          // what the health check said last
}

// with returns an error that names the last trouble as well.
func (t *told) with(err error) error {
	if t.trouble == nil || errors.Is(err, t.trouble) {
		return err
	}
	return fmt.Errorf("%w (last trouble: %w)", err, t.trouble)
}

// refusal returns why a single attempt failed.
func (t *told) refusal() error {
	if t.claim != nil {
		return t.claim
	}
	return errLate
}

// errLate means that our record was there, but the store's answer was so long on its
// way that the lease could not be trusted any more.
var errLate = errors.New("election: the store's answer came too late to be trusted")

// troubleWith says what could not be done.
func troubleWith(op machine.Op) string {
	switch op {
	case machine.Ask:
		return "not healthy enough to lead"
	case machine.Create, machine.Displace:
		return "cannot tell whether the claim was carried out"
	case machine.Refresh:
		return "cannot tell whether the safe that was handed over is held"
	case machine.Publish:
		return "cannot tell whether something was published"
	case machine.HandOver:
		return "cannot tell whether the safe was handed over"
	case machine.Delete, machine.Vacate:
		return "cannot tell whether a record of our own was removed"
	case machine.Join:
		return "cannot tell whether there is a place in line"
	case machine.Stay:
		return "cannot tell whether the place in line is kept"
	case machine.NoOp, machine.Get:
	}
	return "cannot see the safe"
}

// hear takes in the outcome of a request, for the log and for errors.
func (c *campaign) hear(k machine.Key, op machine.Op, v machine.Verdict, err error) {
	l := c.lock(k)
	if v == machine.Invalid {
		c.told.invalid = err
	}
	switch op {
	case machine.Ask:
		c.sick = err != nil
		c.told.illness = err
		c.claimed(err)
	case machine.Create, machine.Displace:
		c.claimed(err)
		if v == machine.Invalid && k == machine.Place {
			c.fault(k, "heir_refused", "cannot compete to be heir", err)
			return
		}
		if v == machine.Held && l.Denied == 1 { // the first refusal is normal for a candidate that came second
			c.logOf(k).Info("waiting for the store to open the safe", "event", "waiting_for_store", "reason", err)
		}
	case machine.Refresh:
		if l.Phase != machine.Waiting {
			c.hearOfRefresh(k, v, err)
			return
		}
	case machine.Publish:
		if k == machine.Place && err != nil && v != machine.Stale {
			c.fault(k, "publish_failed", "cannot tell the others who leads", err)
			return
		}
	case machine.Stay:
		if v == machine.Stale {
			c.fault(k, "place_lost", "lost the place in line", err)
		}
	case machine.Vacate:
		if v == machine.Unclear {
			c.log.Info("cannot tell whether there is an heir to hand over to", "event", "heir_not_seen", "token", l.Remains.Record().Token, "error", err)
		}
	case machine.HandOver:
		if v == machine.Invalid {
			c.log.Warn("cannot hand over", "event", "hand_over_refused", "token", l.Remains.Record().Token, "error", err)
			return
		}
	}
	switch what := troubleWith(op); {
	case op == machine.Ask && err != nil:
		c.fault(k, "unhealthy", what, err)
	case v == machine.Unclear:
		c.fault(k, "request_unclear", what, err)
	default:
		c.told.trouble = nil
	}
}

// claimed keeps the outcome of a claim, if the campaign may fail with it.
func (c *campaign) claimed(err error) {
	if c.entry.once {
		c.told.claim = err
	}
}

// hearOfRefresh tells of refreshes that fail, and that they succeed again.
func (c *campaign) hearOfRefresh(k machine.Key, v machine.Verdict, err error) {
	failed := &c.told.failing[k]
	token := c.lock(k).Remains.Record().Token
	switch {
	case v == machine.OK && *failed:
		c.logOf(k).Info("refreshes succeed again", "event", "refreshes_again", "token", token)
	case v == machine.Unclear && !*failed:
		c.told.trouble = err
		if c.state.Stage < machine.Quitting { // else it may be called off, and nobody needs it any more
			c.logOf(k).Warn("cannot refresh", "event", "refresh_failed", "token", token, "error", err)
		}
	}
	*failed = v == machine.Unclear
}

// fault keeps the last trouble, and tells of it if it is new, or goes on for long. Name is the
// log's for what has happened.
func (c *campaign) fault(k machine.Key, name, what string, err error) {
	c.told.trouble = err
	if c.told.last == nil {
		c.told.last = &complaint{}
	}
	if c.state.Stage < machine.Quitting && c.told.last.due(err) {
		c.logOf(k).Warn(what, "event", name, "error", err)
	}
}

// waitsFor logs which holder it waits for, if that has changed.
func (c *campaign) waitsFor(k machine.Key, rec kv.Record) {
	c.told.trouble = nil
	log := c.logOf(k)
	last := c.told.holders[k].Record()
	if n := machine.NoteOf(rec); k == machine.Place && n.Calls != "" {
		log.Debug("waiting for a candidate that is called to be heir", "event", "waiting_for_call", "called", n.Calls)
		return
	}
	if rec == last || rec.Owns(last) && rec.Permanent == last.Permanent {
		return
	}
	c.told.holders[k] = c.lock(k).Seen.At(rec)
	switch {
	case rec.Foreign && rec.Permanent:
		log.Warn("waiting for a record that this library did not write and that never expires: if nobody holds that lock, remove it by hand", "event", "waiting_for_ever", "value", rec.Value)
	case rec.Permanent:
		log.Warn("waiting for a record whose expiry was taken away: if its owner is gone, remove it by hand", "event", "waiting_for_ever", "leader", machine.IDOf(rec.Signature), "token", rec.Token)
	case rec.Foreign:
		log.Info("waiting for a holder that is not of this library", "event", "waiting_for_foreign", "value", rec.Value)
	default:
		log.Info("waiting", "event", "waiting", k.String(), machine.IDOf(rec.Signature), "token", rec.Token)
	}
}

// heldBy returns an ErrHeld that names the holder that the campaign waits for, by the last
// news from the store, nil if there was none.
func (c *campaign) heldBy() error {
	for _, l := range []*machine.Lock{&c.state.Lead, &c.state.Place} {
		if l.Phase != machine.Waiting {
			continue
		}
		if rec := l.Seen.Record(); rec != (kv.Record{}) {
			return heldBy(l.Key, rec)
		}
		if l.Denied > 0 {
			return ErrHeld
		}
	}
	return nil
}

// heldBy returns an ErrHeld that names the owner of a record that was seen. Without a
// record it names no owner.
func heldBy(k machine.Key, rec kv.Record) error {
	switch {
	case rec.Foreign:
		return fmt.Errorf("%w: a lock that this library did not write, with the value %.80q", ErrHeld, rec.Value)
	case rec.Signature == "":
		return ErrHeld
	}
	return fmt.Errorf("%w: %s %q, token %d", ErrHeld, k, machine.IDOf(rec.Signature), rec.Token)
}

// lock returns the machine's lock on a key.
func (c *campaign) lock(k machine.Key) *machine.Lock {
	if k == machine.Place {
		return &c.state.Place
	}
	return &c.state.Lead
}

// logOf returns the log for what concerns a safe.
func (c *campaign) logOf(k machine.Key) *slog.Logger {
	if k == machine.Place {
		return c.log.With("safe", k.String())
	}
	return c.log
}

// tellRole reports the candidate's present role.
func (c *campaign) tellRole() {
	switch {
	case c.term != nil: // which tells of its end itself
	case c.state.Stage != machine.Standing || c.sick:
		c.roles.is(c, RoleIdle)
	case c.state.Place.Phase == machine.Owner:
		c.roles.is(c, RoleHeir)
	default:
		c.roles.is(c, RoleCandidate)
	}
}

// tellRelease tells that nothing is left of the term.
func (c *campaign) tellRelease() {
	c.term.announce()
	c.hookRelease()
	if !c.term.freed && !c.missing && !c.fades {
		c.log.Info("released", "event", "released", "token", c.term.token)
	}
}

// tellOfPlace tells the log that the candidate has become heir.
func (c *campaign) tellOfPlace(before machine.Phase) {
	if p := &c.state.Place; before != machine.Owner && p.Phase == machine.Owner {
		c.logOf(machine.Place).Info("heir", "event", "heir", "token", p.Remains.Record().Token)
	}
}
