package election

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/electkv/election/internal/machine"
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
	return c.elect(ctx, context.WithoutCancel(ctx), entry{})
}

// flush has what was said by now reach those who were to be told.
func (c *Candidate) flush() {
	c.roles.out.flush()
	c.logs.flush()
}

// An entry is how a campaign begins and what its term will be like.
type entry struct {
	rest  time.Duration // leave a vacancy to the others for so long
	once  bool          // one attempt, and no more
	drain bool          // the lease is kept after the term's end, until released
}

// A campaign carries out what package machine decides: one attempt of a candidate to be
// elected, and the term that it wins. Events come one at a time, under mu; what they ask
// for is done elsewhere, so that nothing waits under it: requests and watches have a
// goroutine each while they last, the user's code is called from others, and a term ends
// without asking anybody.
type campaign struct {
	*Candidate
	entry entry
	base  context.Context    // parent of the term's context
	ctx   context.Context    // of requests and watches
	stop  context.CancelFunc // ends them

	decided chan struct{} // closed when it is elected, or never will be
	gone    chan struct{} // closed when nothing is left of it

	mu      sync.Mutex
	state   *machine.Campaign
	trace   *machine.Trace
	alarm   *time.Timer // for when the machine is due
	jobs    int         // goroutines that are at work
	left    bool        // the machine is done
	calls   [2]call     // on their way, by lock
	watches [2]*watching
	sick    bool       // the health check has failed, and was not asked since
	told    told       // what the log tells of
	failure error      // why it will never be elected
	missing bool       // the record was gone before it was asked to be removed
	given   bool       // what may be left is left to fade
	term    *Term      // nil until it is elected
	saying  chan error // takes what becomes of what the leader publishes; nil if nobody asks
}

// A call is a request that is on its way.
type call struct {
	id     uint32
	cancel context.CancelFunc
}

// enter begins a campaign.
func (c *Candidate) enter(base context.Context, s entry) *campaign {
	cm := &campaign{
		Candidate: c,
		base:      base,
		entry:     s,
		decided:   make(chan struct{}),
		gone:      make(chan struct{}),
	}
	cm.ctx, cm.stop = context.WithCancel(context.WithoutCancel(base))
	cfg, memory := c.config(s), c.recall()
	cm.state, cm.trace = machine.New(cfg, memory), machine.Begin(base, cfg, memory)
	c.log.DebugContext(base, "campaigning")
	cm.post(&machine.Event{Kind: machine.Enter, Rest: s.rest, Once: s.once, Drain: s.drain})
	return cm
}

// campaign campaigns until the candidate is elected, or ctx ends, or it never will be. It
// does little itself, so that the stack of a goroutine that waits here stays small.
func (c *Candidate) campaign(ctx, base context.Context, s entry) (*Term, error) {
	if c.opts.Rank < 0 {
		return nil, c.refrain(ctx, s)
	}
	cm := c.enter(base, s)
	select {
	case <-cm.decided:
	case <-ctx.Done():
	}
	return cm.outcome(ctx)
}

// refrain waits until ctx ends, as a candidate does that may never stand.
func (c *Candidate) refrain(ctx context.Context, s entry) error {
	if s.once {
		return fmt.Errorf("election: campaign for %q: %w", c.name, errBelowZero)
	}
	c.log.InfoContext(ctx, "does not stand: its rank is below zero")
	<-ctx.Done()
	return fmt.Errorf("election: campaign for %q: %w (%w)", c.name, causeOf(ctx), errBelowZero)
}

// outcome returns the term that was won, or withdraws.
func (c *campaign) outcome(ctx context.Context) (*Term, error) {
	term, err := c.verdict(ctx)
	if err == nil {
		return term, nil
	}
	c.post(&machine.Event{Kind: machine.Withdraw, Within: c.pace.Attempt})
	<-c.gone
	if c.given {
		c.log.WarnContext(ctx, "withdrew, but cannot tell whether a record is left to fade", "error", c.told.trouble)
	}
	if c.entry.once && errors.Is(err, kv.ErrHeld) {
		err = fmt.Errorf("%w (%w)", c.whoHolds(ctx), err)
	}
	return nil, fmt.Errorf("election: campaign for %q: %w", c.name, err)
}

// errBelowZero is why a candidate may never stand.
var errBelowZero = errors.New("a candidate whose rank is below zero never stands")

// verdict returns the term, or why there is none and will be none.
func (c *campaign) verdict(ctx context.Context) (*Term, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.failure
	switch {
	case ctx.Err() != nil: // also if it has won by now: nobody wants it any more
		err = causeOf(ctx)
	case c.term != nil:
		return c.term, nil
	case c.entry.once:
		return nil, err
	}
	if held := c.heldBy(); held != nil {
		err = fmt.Errorf("%w; when last told, %w", err, held)
	}
	return nil, c.told.with(err)
}

// post gives the machine an event.
func (c *campaign) post(e *machine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(e)
}

// buffers are for the effects of a step: few campaigns have any at a time.
var buffers = sync.Pool{New: func() any { return new([]machine.Effect) }} //nolint:gochecknoglobals // they hold nothing

// step gives the machine an event, and does what it asks for.
func (c *campaign) step(e *machine.Event) {
	if c.left {
		return
	}
	e.Wall = time.Now().UnixMilli()
	before, now := c.state.Place.Phase, c.clock()
	buffer := buffers.Get().(*[]machine.Effect)
	effects := c.state.Step(now, e, (*buffer)[:0])
	c.trace.Stepped(now, e, effects)
	c.tellOfPlace(before)
	for i := range effects {
		c.do(&effects[i])
	}
	clear(effects)
	*buffer = effects
	buffers.Put(buffer)
	c.settle()
}

// settle arranges what the machine's state asks for: its records, its watches, the time
// of its next step.
func (c *campaign) settle() {
	if c.term != nil && c.state.Lead.Remains.Kind == machine.Mine {
		c.term.update(c.state.Lead.Remains.Record)
	}
	c.tellRole()
	for k := range c.watches {
		c.arrangeWatch(machine.Key(k)) //nolint:gosec // two of them
	}
	if c.alarm != nil {
		c.alarm.Stop()
	}
	if c.left {
		c.stop()
		c.memory.keep(c.state.Memory)
		c.tellRelease()
		c.conclude()
		return
	}
	due := c.state.Due()
	if due == math.MaxInt64 {
		return
	}
	wait := due - c.clock().Mono
	if c.alarm == nil {
		c.alarm = time.AfterFunc(wait, func() { c.post(&machine.Event{Kind: machine.Tick}) })
		return
	}
	c.alarm.Reset(wait)
}

// start runs a job. It is called with mu held.
func (c *campaign) start(job func()) {
	c.jobs++
	go func() {
		job()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.jobs--
		c.conclude()
	}()
}

// conclude notes that nothing is left, if that is so.
func (c *campaign) conclude() {
	if c.left && c.jobs == 0 {
		close(c.gone)
	}
}

// do carries an effect out.
func (c *campaign) do(f *machine.Effect) {
	switch f.Kind {
	case machine.Send:
		c.send(f.Key, f.Request)
	case machine.Hurry:
		c.hurry(f.Key, f.Request)
	case machine.Elected:
		c.elected(f.Record, f.Trust)
	case machine.Extended:
		if f.Key == machine.Lead {
			c.term.extend(f.Trust)
		}
	case machine.Ended:
		c.ended(f)
	case machine.Said:
		c.said(f.Key, nil)
	case machine.Unsaid:
		c.said(f.Key, c.told.invalid)
	case machine.HandedOver:
		c.log.Info("handed over", "token", c.term.token, "heir", machine.IDOf(f.Record.Signature))
		c.term.freed = true
	case machine.Missing:
		c.missing = c.missing || f.Key == machine.Lead
	case machine.Abandoned:
		c.given = c.given || c.state.Stage >= machine.Quitting // else a leader has left to fade what it had as heir
	case machine.Failed:
		c.decide(c.told.invalid)
	case machine.Refused:
		c.decide(c.told.refusal())
	case machine.Examine:
		c.examine()
	case machine.Call:
		c.call(f.Record)
	case machine.Left:
		c.left = true
	}
}

// decide notes that there will be no term.
func (c *campaign) decide(why error) {
	if c.failure == nil && c.term == nil {
		c.failure = why
		close(c.decided)
	}
}

// elected begins the term.
func (c *campaign) elected(rec kv.Record, trust machine.Trust) {
	c.log.Info("elected", "token", rec.Token)
	c.memory.keep(c.state.Memory)
	c.roles.is(RoleLeader)
	c.term = newTerm(c, rec, trust)
	if c.opts.Hold == 0 { // else when the election is closed to others
		c.newest.Store(c.term)
	}
	if c.failure == nil {
		close(c.decided)
	}
}

// ended has the term end, if it has not by itself, or tells of the end of an heir's place.
func (c *campaign) ended(f *machine.Effect) {
	if f.Key == machine.Lead {
		c.term.latch(c.causeOf(f.Cause), false) //nolint:errcheck // the cause is told by the term
		return
	}
	if c.state.Stage != machine.Standing {
		return // given up, to lead or to leave
	}
	log := c.logOf(machine.Place)
	log.Debug("heir no more", "token", f.Record.Token, "cause", f.Cause)
	if f.Cause == machine.Unhealthy || f.Cause == machine.Sightless {
		log.Warn("cannot be heir", "cause", f.Cause, "error", c.told.trouble)
	}
}

// causeOf returns the cause of a term's end.
func (c *campaign) causeOf(cause machine.Cause) error {
	switch cause {
	case machine.Expired:
		return errExpired
	case machine.Taken:
		return errTaken
	case machine.Unhealthy:
		return fmt.Errorf("%w: %w", ErrResigned, c.told.illness)
	case machine.NoCause, machine.Sightless, machine.Resigned:
	}
	return ErrResigned
}

var (
	errExpired = fmt.Errorf("%w: not refreshed in time", ErrLost)
	errTaken   = fmt.Errorf("%w: the record is gone or somebody else's", ErrLost)
)

// machineCause returns what the cause of a term's end is to the machine.
func machineCause(cause error) machine.Cause {
	switch {
	case errors.Is(cause, errUnhealthy):
		return machine.Unhealthy
	case errors.Is(cause, ErrLost):
		return machine.Expired
	}
	return machine.Resigned
}

// tellRole tells what the candidate is by now.
func (c *campaign) tellRole() {
	switch {
	case c.term != nil: // which tells of its end itself
	case c.state.Stage != machine.Standing || c.sick:
		c.roles.is(RoleOrdinary)
	case c.state.Place.Phase == machine.Owner:
		c.roles.is(RoleHeir)
	default:
		c.roles.is(RoleCandidate)
	}
}

// tellRelease tells the log that the safe is free.
func (c *campaign) tellRelease() {
	if c.term != nil && !c.term.freed && !c.missing && !c.given {
		c.log.Info("released", "token", c.term.token)
	}
}

// tellOfPlace tells the log that the candidate has become heir.
func (c *campaign) tellOfPlace(before machine.Phase) {
	if p := &c.state.Place; before != machine.Owner && p.Phase == machine.Owner {
		c.logOf(machine.Place).Info("heir", "token", p.Remains.Record.Token)
	}
}
