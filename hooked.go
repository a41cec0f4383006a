package election

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// noHooks are those of candidates without any.
var noHooks = &Hooks{} //nolint:gochecknoglobals // nothing changes it

// campaigns counts the campaigns of this process.
var campaigns atomic.Uint64 //nolint:gochecknoglobals // by which hooks tell them apart

// hookInfo returns what all hooks are told of what happens now.
func (c *campaign) hookInfo() HookInfo { return HookInfo{c.owner, c.number, time.Now()} }

// hookStart tells that the campaign begins.
func (c *campaign) hookStart() {
	c.began = time.Now()
	if hook := c.opts.Hooks.CampaignStart; hook != nil {
		tell(c.base, c.opts.Hooks, hookRoom, hook, CampaignStartInfo{c.hookInfo()})
	}
}

// hookDone tells how the campaign has ended. Token is zero if it has won nothing.
func (c *campaign) hookDone(token uint64, err error) {
	if hook := c.opts.Hooks.CampaignDone; hook != nil {
		tell(c.base, c.opts.Hooks, hookRoom, hook, CampaignDoneInfo{c.hookInfo(), time.Since(c.began), token, err})
	}
}

// hookTerm tells that a term begins.
func (c *campaign) hookTerm(token uint64) {
	c.hookDone(token, nil)
	if hook := c.opts.Hooks.TermStart; hook != nil {
		tell(c.base, c.opts.Hooks, hookRoom, hook, TermStartInfo{c.hookInfo(), token})
	}
}

// came returns the moment at which an answer came, if that is told.
func (c *campaign) came() (now machine.Instant) {
	if c.opts.Hooks.RefreshDone != nil {
		now = c.clock.now()
	}
	return now
}

// hookRefresh tells of a refresh of the leader's lease, before the answer is taken in. Came is
// when that came.
func (c *campaign) hookRefresh(op machine.Op, a *machine.Answer, err error, came machine.Instant) {
	hook := c.opts.Hooks.RefreshDone
	if hook == nil || op != machine.Refresh || a.Key != machine.Lead || c.term == nil {
		return
	}
	tell(c.base, c.opts.Hooks, sampleRoom, hook, RefreshDoneInfo{
		c.hookInfo(), c.term.token, came.Mono - a.Sent.Mono, outcomeOf(op, err), err, c.term.left(came),
	})
}

// hookRelease tells that nothing is left of the campaign's term.
func (c *campaign) hookRelease() {
	hook := c.opts.Hooks.ReleaseDone
	if hook == nil {
		return
	}
	t := c.term
	drain, done := t.drain.finish()
	info := ReleaseDoneInfo{HookInfo: c.hookInfo(), Token: t.token, Reason: t.why(), Drain: drain, Release: ReleaseFreed}
	info.Took = info.Time.Sub(done)
	switch {
	case t.freed:
		info.Release, info.Heir, info.HeirToken = ReleaseHandedOver, t.heir, t.heirToken
	case c.missing:
		info.Release = ReleaseMissing
	case c.fades:
		info.Release = ReleaseLeft
	}
	tell(c.base, c.opts.Hooks, hookRoom, hook, info)
}

// hookEnd tells that the term has ended, for a cause.
func (t *Term) hookEnd(cause error, reason Reason) {
	if hook := t.c.opts.Hooks.TermDone; hook != nil {
		tell(t.c.base, t.c.opts.Hooks, hookRoom, hook, TermDoneInfo{t.c.hookInfo(), t.token, time.Since(t.began), reason, cause})
	}
}

// left returns how much trust in the lease was left at a moment.
func (t *Term) left(at machine.Instant) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trust.Left(at)
}

// hookStore tells of a request of the campaign.
func (c *campaign) hookStore(op machine.Op, k machine.Key, took time.Duration, err error) {
	hook := c.opts.Hooks.StoreDone
	if hook == nil || op == machine.Ask || op == machine.NoOp {
		return
	}
	name := Op(strings.ReplaceAll(op.String(), " ", "_"))
	tell(c.base, c.opts.Hooks, sampleRoom, hook, StoreDoneInfo{c.hookInfo(), name, k.String(), took, outcomeOf(op, err), err})
}

// hookWatch tells that a watch has ended with an error.
func (c *campaign) hookWatch(k machine.Key, err error) {
	if hook := c.opts.Hooks.StoreDone; hook != nil {
		tell(c.base, c.opts.Hooks, sampleRoom, hook, StoreDoneInfo{c.hookInfo(), OpWatch, k.String(), 0, OutcomeUnclear, err})
	}
}

// outcomeOf returns what is known after a request.
func outcomeOf(op machine.Op, err error) Outcome {
	switch v := verdictOf(op, err); {
	case v == machine.OK || v == machine.Vacant:
		return OutcomeOK
	case v != machine.Unclear:
		return OutcomeRefused
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled
	}
	return OutcomeUnclear
}

// observed returns the store as one whose requests are told to the hook. It is for requests
// that no campaign is known of.
func (c *Candidate) observed() kv.Store { return c.observedFor(0) }

// observed is for what helps the campaign beside its own requests.
func (c *campaign) observed() kv.Store { return c.observedFor(c.number) }

func (c *Candidate) observedFor(campaign uint64) kv.Store {
	if c.opts.Hooks.StoreDone == nil {
		return c.store
	}
	return observedStore{c.store, c, campaign}
}

// An observedStore tells the hook of its requests.
type observedStore struct {
	kv.Store
	c        *Candidate
	campaign uint64
}

func (s observedStore) told(ctx context.Context, name string, op machine.Op, ask func() (kv.Record, error)) (kv.Record, error) {
	began := time.Now()
	rec, err := ask()
	now := time.Now()
	tell(ctx, s.c.opts.Hooks, sampleRoom, s.c.opts.Hooks.StoreDone, StoreDoneInfo{
		HookInfo{s.c.owner, s.campaign, now}, Op(op.String()), safeOf(name), now.Sub(began), outcomeOf(op, err), err,
	})
	return rec, err
}

// Create implements [kv.Store].
func (s observedStore) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.told(ctx, name, machine.Create, func() (kv.Record, error) { return s.Store.Create(ctx, name, rec) })
}

// Swap implements [kv.Store].
func (s observedStore) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	op := machine.Displace
	if old.Signature == next.Signature {
		op = machine.Publish
	}
	return s.told(ctx, name, op, func() (kv.Record, error) { return s.Store.Swap(ctx, name, old, next) })
}

// Refresh implements [kv.Store].
func (s observedStore) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.told(ctx, name, machine.Refresh, func() (kv.Record, error) { return s.Store.Refresh(ctx, name, rec) })
}

// Delete implements [kv.Store].
func (s observedStore) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := s.told(ctx, name, machine.Delete, func() (kv.Record, error) { return kv.Record{}, s.Store.Delete(ctx, name, rec) })
	return err
}

// Get implements [kv.Store].
func (s observedStore) Get(ctx context.Context, name string) (kv.Record, error) {
	return s.told(ctx, name, machine.Get, func() (kv.Record, error) { return s.Store.Get(ctx, name) })
}
