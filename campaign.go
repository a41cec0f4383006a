package election

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/electkv/election/internal/gather"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/stack"
	"github.com/electkv/election/kv"
)

// Campaign waits until the candidate is elected and returns its term. The
// caller must call Term.Resign once its work has stopped, even if the term was
// lost; Run does that by itself.
//
// ctx bounds the campaign only, never the term; its values are in the term's
// context. When ctx ends, or the store can never do what is asked (kv.ErrInvalid),
// Campaign returns an error. It wraps the reason, [ErrHeld] if another had
// the safe by the store's last answer, and the last trouble with the store, if there
// was any since. Campaign removes a record that it may have written meanwhile, within a
// third of the TTL if the store answers. If a request is on its way when ctx ends,
// Campaign waits for it, for a sixth of the TTL at most, to know what it did.
func (c *Candidate) Campaign(ctx context.Context) (*Term, error) {
	c.enlist(ctx)
	term, err := c.elect(ctx, context.WithoutCancel(ctx), entry{enlisted: true})
	if err != nil {
		c.delist(context.WithoutCancel(ctx))
		c.part()
	}
	return term, err
}

// flush waits until log records and roles that were posted by now have been delivered.
func (c *Candidate) flush() {
	c.roles.out.flush()
	c.logs.flush()
}

// part does so at the return of what was called, and waits for the hooks too.
func (c *Candidate) part() {
	c.flush()
	c.opts.Hooks.queue.flush()
}

// An entry is how a campaign begins and what its term will be like.
type entry struct {
	rest  time.Duration // leave a vacancy to the others for so long
	once  bool          // one attempt, and no more
	drain bool          // the lease is kept after the term's end, until released

	enlisted bool // the candidate is in the roster for this term until it is resigned
}

// A campaign carries out what package machine decides: one attempt of a candidate to be
// elected, and the term that it wins. Events come one at a time, under mu. Their effects
// are carried out elsewhere, so that nothing waits under mu: each request and watch has a
// goroutine while it lasts, the user's code is called from others, and a term ends
// without asking any of them.
type campaign struct {
	*Candidate
	entry entry
	base  context.Context // parent of the term's context

	number uint64    // among the campaigns of this process
	began  time.Time // for the hooks

	mu      sync.Mutex
	state   machine.Campaign
	trace   *machine.Trace
	alarm   *time.Timer  // for when the machine is due; nil if it is not, or if turn is set
	turn    gather.Alarm // for when it is due to refresh together with others
	decided latch        // it is elected, or never will be
	gone    latch        // nothing is left of it
	calls   [2]call      // on their way, by lock
	watches [2]*watching
	aids    *leash     // of everything else that runs, besides requests and watches; nil if nothing did yet
	told    told       // what the log tells of
	failure error      // why it will never be elected
	term    *Term      // nil until it is elected
	saying  chan error // takes the outcome of a publication; nil if none is awaited
	jobs    int32      // that are not done
	next    job        // that the goroutine which steps is to do when it has stepped
	handy   bool       // that goroutine is one of ours, and can take a job
	left    bool       // the machine is done
	sick    bool       // the health check has failed, and was not asked since
	missing bool       // the record was gone before it was asked to be removed
	taken   bool       // and the store should still have kept it
	fades   bool       // what may be left is left to fade
}

// A call is a request that is on its way.
type call struct {
	id     uint32
	cancel func() // nil if there is none
}

// end calls it off.
func (c call) end() {
	if c.cancel != nil {
		c.cancel()
	}
}

// enter begins a campaign. It is a job.
func (c *campaign) enter() (then func()) {
	stack.Grow()
	s := c.entry
	cfg, memory := c.config(s), c.recall()
	if c.opts.Roster {
		cfg.Nonce = fmt.Sprintf("%s-%d", c.enrolled.tag, c.number)
	}
	c.log.DebugContext(c.base, "campaigning", "event", "campaign_started")
	return func() {
		if c.left { // it was withdrawn meanwhile
			return
		}
		c.state, c.trace = *machine.New(cfg, memory), machine.Begin(c.base, cfg, memory)
		c.turn.Ring = c.ring
		c.step(&machine.Event{Kind: machine.Enter, Rest: s.rest, Once: s.once, Drain: s.drain})
	}
}

// campaign campaigns until the candidate is elected, or ctx ends, or it never will be. It
// does little itself, so that the stack of a goroutine that waits here, and then leads, stays
// small: a stack that has grown for a moment does not become as small again. The goroutine
// that enters also makes the first claim.
func (c *Candidate) campaign(ctx, base context.Context, s entry) (*Term, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("election: campaign for %q: %w", c.name, causeOf(ctx))
	}
	cm := &campaign{Candidate: c, base: base, entry: s, jobs: 1, number: campaigns.Add(1)}
	cm.hookStart()
	decided := cm.decided.wait()
	go cm.work(cm.enter)
	select {
	case <-decided:
	case <-ctx.Done():
	}
	return cm.resolve(ctx)
}

// until returns a channel that is closed when something has happened.
func (c *campaign) until(l *latch) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.wait()
}

// resolve returns the term that was won. If there is none, it removes what is left of the campaign,
// and returns why. After ctx has ended, Campaign gets no term, but Run and TryRun do: others may
// have been told of the term, and rely on its work being called.
func (c *campaign) resolve(ctx context.Context) (*Term, error) {
	c.mu.Lock()
	if c.term != nil && (ctx.Err() == nil || c.entry.drain) {
		defer c.mu.Unlock()
		return c.term, nil
	}
	err := c.verdict(ctx)
	c.left = c.left || c.state.Stage == machine.Off
	c.quit()
	if c.term != nil { // nobody gets it
		c.term.stop()
	}
	c.mu.Unlock()
	<-c.until(&c.gone)
	if c.term != nil {
		c.term.stopHelpers()
		c.term.helpers.Wait()
	}
	if c.fades {
		c.log.WarnContext(ctx, "withdrew, but cannot tell whether a record is left in the store until it expires", "event", "record_may_be_left", "error", c.told.trouble)
	}
	if c.entry.once && errors.Is(err, kv.ErrHeld) {
		err = fmt.Errorf("%w (%w)", c.whoHolds(ctx), err)
	}
	err = fmt.Errorf("election: campaign for %q: %w", c.name, err)
	if c.term == nil {
		c.hookDone(0, err)
	}
	return nil, err
}

// quit begins to remove what is left of the campaign, if nothing has yet. It is called with mu
// held.
func (c *campaign) quit() {
	if c.state.Stage < machine.Quitting {
		c.step(&machine.Event{Kind: machine.Withdraw, Within: c.pace.Attempt})
	}
}

// verdict returns why there is no term and will be none. It is called with mu held.
func (c *campaign) verdict(ctx context.Context) error {
	err := c.failure
	switch {
	case ctx.Err() != nil:
		err = causeOf(ctx)
	case c.entry.once:
		return err
	}
	if held := c.heldBy(); held != nil {
		err = fmt.Errorf("%w; by the last news from the store, %w", err, held)
	}
	return c.told.with(err)
}

// ring has the machine step, since it is due. It does not block.
func (c *campaign) ring() {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		c.step(&machine.Event{Kind: machine.Tick})
		return
	}
	go c.post(&machine.Event{Kind: machine.Tick})
}

// post gives the machine an event.
func (c *campaign) post(e *machine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(e)
}

// buffers are for the effects of a step: few campaigns have any at a time.
var buffers = sync.Pool{New: func() any { return new([]machine.Effect) }} //nolint:gochecknoglobals // they hold nothing

// step gives the machine an event, and does what it asks for. What is heard after the context of
// Run or TryRun has ended wins no term: nobody wants it any more. What a watch shows then is
// dropped if the machine has ended that watch.
func (c *campaign) step(e *machine.Event) {
	if c.state.Stage == machine.Standing && e.Kind != machine.Withdraw && c.base.Err() != nil {
		c.quit()
	}
	if c.left || e.Kind == machine.Saw && !c.state.Watched(e.Key) {
		return
	}
	e.Wall = time.Now().UnixMilli()
	if c.remembers() {
		e.Past = c.memory.history()
	}
	before, now := c.state.Place.Phase, c.clock.now()
	buffer := buffers.Get().(*[]machine.Effect)
	effects := c.state.Step(now, e, (*buffer)[:0])
	c.trace.Stepped(now, e, effects)
	c.tellOfPlace(before)
	switch {
	case c.term == nil:
	case c.state.Lead.Remains.Kind == machine.Mine:
		c.term.update(c.state.Lead.Remains.Ref) // before any caller is told of it
	default:
		c.term.miss(now)
	}
	for i := range effects {
		c.do(&effects[i], now)
	}
	clear(effects)
	*buffer = effects
	buffers.Put(buffer)
	c.settle(now)
}

// remembers reports whether the candidate takes part in the election's history. Where there is
// no heir nobody carries it on, and a lock that is taken a thousand times a second has none.
func (c *campaign) remembers() bool { return !c.noHeir(c.entry) }

// saw takes in what the leader's safe holds.
func (c *campaign) saw(rec kv.Record) {
	if c.remembers() {
		c.memory.saw(rec)
	}
}

// settle arranges what the machine's state asks for: its watches, and the time of its next
// step.
func (c *campaign) settle(now machine.Instant) {
	c.tellRole()
	for k := range c.watches {
		c.arrangeWatch(machine.Key(k)) //nolint:gosec // two of them
	}
	c.arrangeTick(now)
	if c.left {
		for _, on := range c.calls {
			on.end()
		}
		if c.aids != nil {
			c.aids.end()
		}
		c.memory.keep(c.state.Memory)
		if c.term != nil {
			c.tellRelease()
		}
		c.conclude()
	}
}

// arrangeTick has the machine step again when it is due.
func (c *campaign) arrangeTick(now machine.Instant) {
	due := time.Duration(math.MaxInt64)
	if !c.left {
		due = c.state.Due()
	}
	if c.term != nil && due == c.state.Lead.Expiry() {
		due = math.MaxInt64 // the term ends by itself then, and says so
	}
	wait := due - now.Mono
	together := c.batch != nil && wait > c.pace.window && c.state.InTurn(due)
	if together {
		c.turn.Set(c.batch, c.pace.window, wait)
	} else {
		c.turn.Stop()
	}
	switch {
	case together || due == math.MaxInt64:
		if c.alarm != nil {
			c.alarm.Stop()
			c.alarm = nil
		}
	case c.alarm == nil:
		c.alarm = time.AfterFunc(wait, c.turn.Ring)
	default:
		c.alarm.Reset(wait)
	}
}

// ctx returns the context of requests and watches, which are ended one by one.
func (c *campaign) ctx() context.Context { return context.WithoutCancel(c.base) }

// A leash is a context and what ends it.
type leash struct {
	context.Context
	end context.CancelFunc
}

// aid returns the context of everything that runs besides requests and watches: it ends when
// nothing is left of the campaign. It is called with mu held.
func (c *campaign) aid() context.Context {
	if c.aids == nil {
		ctx, cancel := context.WithCancel(c.ctx())
		c.aids = &leash{ctx, cancel}
	}
	return c.aids.Context
}

// conclude notes that nothing is left, if that is so.
func (c *campaign) conclude() {
	if c.left && c.jobs == 0 {
		c.gone.pass()
	}
}

// do carries an effect out.
func (c *campaign) do(f *machine.Effect, now machine.Instant) {
	switch f.Kind {
	case machine.Send:
		c.send(f.Key, &f.Request, now)
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
		t := c.term
		t.freed, t.heir, t.heirToken = true, machine.IDOf(f.Record.Signature), f.Record.Token
		c.log.Info("handed over", "event", "handed_over", "token", t.token, "heir", t.heir)
	case machine.Missing:
		if f.Key == machine.Lead {
			c.missing, c.taken = true, c.taken || c.term != nil && c.term.kept()
		}
	case machine.Abandoned:
		c.fades = c.fades || c.state.Stage >= machine.Quitting // else a leader has left to fade what it had as heir
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
		c.decided.pass()
	}
}

// elected begins the term.
func (c *campaign) elected(rec kv.Record, trust machine.Trust) {
	c.log.Info("elected", "event", "elected", "token", rec.Token)
	c.memory.keep(c.state.Memory)
	c.saw(rec)
	c.roles.is(c, RoleLeader)
	c.hookTerm(rec.Token)
	c.term = newTerm(c, rec, trust)
	if c.opts.Hold == 0 { // else when the election is closed to others
		c.newest.Store(c.term)
	}
	if c.failure == nil {
		c.decided.pass()
	}
}

// ended has the term end, if it has not by itself, or tells of the end of an heir's place.
func (c *campaign) ended(f *machine.Effect) {
	if f.Key == machine.Lead {
		c.term.latch(c.causeOf(f.Cause), reasonOf(f.Cause), false) //nolint:errcheck // the cause is told by the term
		return
	}
	if c.state.Stage != machine.Standing {
		return // given up, to lead or to leave
	}
	log := c.logOf(machine.Place)
	log.Debug("no longer heir", "event", "heir_ended", "token", f.Record.Token, "cause", f.Cause)
	if f.Cause == machine.Unhealthy || f.Cause == machine.Sightless {
		log.Warn("cannot be heir", "event", "heir_refused", "cause", f.Cause, "error", c.told.trouble)
	}
}
