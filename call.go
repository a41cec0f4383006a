package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/stack"
	"github.com/electkv/election/internal/throttle"
	"github.com/electkv/election/kv"
)

// send makes a request, which is answered once. Now is a moment before it leaves.
func (c *campaign) send(k machine.Key, r *machine.Request, now machine.Instant) {
	if c.batch == nil || r.Op != machine.Refresh || c.lock(k).Phase != machine.Owner {
		c.sendAlone(k, *r, now, func() {})
		return
	}
	if !r.Shared {
		if leave, ok := gather.Alone(c.batch); ok {
			c.sendAlone(k, *r, now, leave)
			return
		}
	}
	c.sendTogether(k, r, now)
}

// sendTogether makes a refresh together with those of others.
func (c *campaign) sendTogether(k machine.Key, r *machine.Request, now machine.Instant) {
	c.jobs++
	id, asked := r.ID, time.Now()
	c.calls[k] = call{id, gather.Refresh(c.batch, c.pace.window, r.Within, c.held(k, r), func(v gather.Verdict) {
		ahead, came := max(asked.Sub(v.Opened), 0), c.came()
		c.hookStore(machine.Refresh, k, time.Since(asked), v.Err)
		if c.mu.TryLock() { // the batch must not wait for this campaign
			defer c.mu.Unlock()
			c.refreshed(machine.Answer{ID: id, Key: k, Sent: now, Record: v.Record, Ahead: ahead}, v.Err, came)
			return
		}
		a, err := machine.Answer{ID: id, Key: k, Sent: now, Record: v.Record, Ahead: ahead}, v.Err
		go func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.refreshed(a, err, came)
		}()
	})}
}

// refreshed takes in the outcome of a refresh that went with others.
func (c *campaign) refreshed(a machine.Answer, err error, came machine.Instant) {
	c.answer(machine.Refresh, &a, err, came)
	c.jobs--
	c.conclude()
}

// sendAlone makes a request of its own, and calls leave when that has been answered.
func (c *campaign) sendAlone(k machine.Key, r machine.Request, now machine.Instant, leave func()) {
	a := machine.Answer{ID: r.ID, Key: k, Sent: now}
	ctx, cancel := context.WithCancel(c.ctx())
	c.calls[k] = call{r.ID, cancel}
	c.start(func() (then func()) {
		err := c.carry(ctx, r, &a)
		came := c.came()
		cancel()
		leave()
		return func() { c.answer(r.Op, &a, err, came) }
	})
}

// held returns the record that a refresh must prove.
func (c *campaign) held(k machine.Key, r *machine.Request) kv.Held {
	return kv.Held{Name: c.nameOf(k), Record: r.Old, Share: mayShare(k)}
}

// mayShare reports whether a record can share a lease with others of the process. A leader's
// can. An heir's cannot: a hand-over puts the leader's record on the heir's lease, and that
// record has to expire if the heir has just left.
func mayShare(k machine.Key) bool { return k == machine.Lead }

// answer tells the machine, the log and the hooks the outcome of a request, which came at some
// moment.
func (c *campaign) answer(op machine.Op, a *machine.Answer, err error, came machine.Instant) {
	a.Verdict = verdictOf(op, err)
	if a.Verdict != machine.Unclear && op != machine.Ask {
		c.heard()
	}
	if op == machine.Get && a.Key == machine.Lead && (a.Verdict == machine.OK || a.Verdict == machine.Vacant) {
		c.saw(a.Record)
	}
	c.hookRefresh(op, a, err, came)
	if op == machine.Refresh && a.Key == machine.Lead && a.Verdict == machine.OK && c.term != nil {
		c.term.keep(machine.Trust{Sent: a.Sent, Span: a.Record.TTL})
	}
	if c.calls[a.Key].id == a.ID {
		c.calls[a.Key] = call{}
	}
	if op != machine.Get || !errors.Is(err, context.Canceled) { // else a watch has shown it sooner
		c.hear(a.Key, op, a.Verdict, err)
	}
	c.step(&machine.Event{Kind: machine.Answered, Answer: *a})
}

// hurry bounds the request that is on its way.
func (c *campaign) hurry(k machine.Key, r machine.Request) {
	on := c.calls[k]
	if on.id != r.ID {
		return
	}
	if r.Within <= 0 {
		on.cancel()
		return
	}
	time.AfterFunc(r.Within, on.cancel)
}

// carry has a request carried out, and notes the answer. If nothing depends on how soon it is made,
// it waits for its turn first. Its time limit counts from when it is sent.
func (c *campaign) carry(ctx context.Context, r machine.Request, a *machine.Answer) (err error) {
	if r.Patient {
		leave, err := throttle.Enter(ctx, c.store)
		if err != nil {
			return err
		}
		defer leave()
		a.Sent = c.clock.now()
	}
	stack.Grow()
	ctx, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	began := time.Now()
	a.Record, a.Leads, err = c.ask(ctx, r)
	c.hookStore(r.Op, r.Key, time.Since(began), err)
	return err
}

// ask has a request carried out. Leads is of a Stay.
func (c *campaign) ask(ctx context.Context, r machine.Request) (rec kv.Record, leads bool, err error) {
	name := c.nameOf(r.Key)
	switch r.Op {
	case machine.NoOp:
	case machine.Ask:
		err = c.healthy(ctx)
	case machine.Create:
		r.New.Shared = mayShare(r.Key)
		rec, err = c.store.Create(ctx, name, r.New)
	case machine.Refresh:
		rec, err = c.store.Refresh(ctx, name, r.Old)
	case machine.Displace, machine.Publish:
		rec, err = c.store.Swap(ctx, name, r.Old, r.New)
	case machine.HandOver:
		rec, err = c.handOver(ctx, r)
	case machine.Delete:
		err = c.store.Delete(ctx, name, r.Old)
	case machine.Vacate:
		rec, err = c.vacate(ctx, r)
	case machine.Get:
		rec, err = c.store.Get(ctx, name)
	case machine.Join:
		rec, err = c.store.(kv.Queue).Join(ctx, name, r.New) // the config says that it is one
	case machine.Stay:
		rec, leads, err = c.store.(kv.Queue).Stay(ctx, name, r.Old)
	}
	return rec, leads, err
}

// handOver puts the heir's signature into the leader's safe in the place of the term's
// own, if the heir's safe still holds the heir's record.
func (c *campaign) handOver(ctx context.Context, r machine.Request) (kv.Record, error) {
	if whole, ok := c.store.(kv.HandOver); ok {
		rec, err := whole.HandOver(ctx, c.nameOf(machine.Lead), r.Old, c.nameOf(machine.Place), r.Heir, r.New.Note)
		if !errors.Is(err, errors.ErrUnsupported) {
			return rec, err
		}
	}
	heir, err := c.store.Get(ctx, c.nameOf(machine.Place))
	switch {
	case errors.Is(err, kv.ErrVacant), err == nil && heir != r.Heir:
		return kv.Record{}, fmt.Errorf("the heir's safe no longer holds %q: %w", machine.IDOf(r.Heir.Signature), kv.ErrStale)
	case err != nil:
		return kv.Record{}, fmt.Errorf("cannot see the heir: %w", err)
	}
	return c.store.Swap(ctx, c.nameOf(machine.Lead), r.Old, r.New)
}

// vacate empties the leader's safe, unless there is an heir: then it returns the heir's record
// and kv.ErrHeld. If that takes two steps and the heir cannot be read, the heir is passed over.
func (c *campaign) vacate(ctx context.Context, r machine.Request) (kv.Record, error) {
	name, place := c.nameOf(machine.Lead), c.nameOf(machine.Place)
	if whole, ok := c.store.(kv.Vacate); ok {
		heir, err := whole.Vacate(ctx, name, r.Old, place)
		if !errors.Is(err, errors.ErrUnsupported) {
			return heir, err
		}
	}
	heir, err := c.glance(ctx, place, r.Within/3)
	switch {
	case err == nil:
		return heir, kv.ErrHeld
	case !errors.Is(err, kv.ErrVacant):
		c.log.Warn("cannot hand over: the heir's safe cannot be seen", "event", "heir_not_seen", "token", r.Old.Token, "error", err)
	}
	return kv.Record{}, c.store.Delete(ctx, name, r.Old)
}

// glance reads a safe, within a time limit.
func (c *campaign) glance(ctx context.Context, name string, within time.Duration) (kv.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.store.Get(ctx, name)
}

// nameOf returns the name of a safe.
func (c *campaign) nameOf(k machine.Key) string {
	if k == machine.Place {
		return heirSafe(c.name)
	}
	return c.name
}

// verdictOf returns what an error says of a request. One that the contract has for the
// operation ([kv.ErrHeld], [kv.ErrStale] …) is a refusal. Any other is unclear: the write may
// have been carried out, or may be carried out later.
func verdictOf(op machine.Op, err error) machine.Verdict {
	if err == nil {
		return machine.OK
	}
	for of, v := range contract(op) {
		if errors.Is(err, of) {
			return v
		}
	}
	return machine.Unclear
}

// contract returns the errors of an operation that say for certain what happened.
func contract(op machine.Op) map[error]machine.Verdict {
	switch op {
	case machine.Create:
		return map[error]machine.Verdict{kv.ErrHeld: machine.Held, kv.ErrInvalid: machine.Invalid}
	case machine.Displace, machine.Publish, machine.HandOver:
		return map[error]machine.Verdict{kv.ErrStale: machine.Stale, kv.ErrInvalid: machine.Invalid}
	case machine.Refresh, machine.Delete, machine.Stay:
		return map[error]machine.Verdict{kv.ErrStale: machine.Stale}
	case machine.Vacate:
		return map[error]machine.Verdict{kv.ErrHeld: machine.Held, kv.ErrStale: machine.Stale}
	case machine.Get:
		return map[error]machine.Verdict{kv.ErrVacant: machine.Vacant}
	case machine.Join:
		return map[error]machine.Verdict{kv.ErrInvalid: machine.Invalid}
	case machine.NoOp, machine.Ask:
	}
	return nil
}
