package scenario

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv/kvfault"
)

// A process is one life of a candidate: from its start until it is killed or
// stopped.
type process struct {
	w      *world
	id     string
	opts   election.Options
	drains time.Duration // how long its work takes to stop
	place  int           // in the cast
	view   *kvfault.Link
	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned

	mu     sync.Mutex
	state  map[condition]bool
	role   election.Role
	term   *election.Term // whose work has not returned
	frozen time.Duration  // what its clocks show while it is paused
	awake  chan struct{}  // closed unless it is paused
}

// A condition is what may be the matter with a process.
type condition int

const (
	dead condition = iota
	cutOff
	paused
	ill
	silent   // what it does is not in the trace any more
	troubled // it was any of these before
)

var errIll = errors.New("sick")

// start begins a candidate's life.
func (w *world) start(id string, place int, opts election.Options, drains time.Duration) error {
	awake := make(chan struct{})
	close(awake)
	p := &process{
		w: w, id: id, opts: opts, drains: drains, place: place,
		view:  kvfault.Wrap(w.store),
		done:  make(chan struct{}),
		state: map[condition]bool{},
		awake: awake,
	}
	opts.ID, opts.TTL, opts.Stability, opts.Succession = id, w.script.ttl, w.script.stability, w.script.succession()
	opts.Health, opts.OnRole = p.health, p.plays
	c, err := election.New(p.view.Store, scene, &opts)
	if err != nil {
		return err
	}
	w.engine.SetClock(c, p.read)
	w.engine.SetJitter(c, p.jitter)
	p.wire()
	w.mu.Lock()
	if old := w.cast[id]; old != nil {
		p.state[troubled] = true
	}
	w.cast[id], w.lives = p, append(w.lives, p)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(w.t.Context())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		err := c.Run(ctx, p.lead)
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			w.t.Errorf("%s: Run returned %v", id, err)
		}
	}()
	return nil
}

// jitter is a share of n that is the candidate's own, and always the same: the
// first of the cast is the quickest.
func (p *process) jitter(n time.Duration) time.Duration {
	return n * time.Duration(2*p.place+1) / time.Duration(2*len(p.w.script.cast))
}

// wire has the store be as near to the process as it is: not within reach, or some
// milliseconds away, from everybody others.
func (p *process) wire() {
	way := 2*time.Millisecond + time.Duration(p.place)*100*time.Microsecond
	all := p.view.On()
	switch {
	case p.is(paused): // and is not to notice anything
	case p.is(dead), p.is(cutOff):
		all.DropRequests()
	default:
		all.Heal()
		all.DelayRequests(way)
		all.DelayReplies(way)
	}
}

// read returns what the host's clocks show to the process.
func (p *process) read() (mono, boot time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.w.trace.began)
	if p.state[paused] {
		now = p.frozen
	}
	return now, now
}

func (p *process) health(context.Context) error {
	if p.is(ill) {
		return errIll
	}
	return nil
}

// plays is told of the candidate's roles.
func (p *process) plays(role election.Role) {
	p.mu.Lock()
	p.role = role
	p.mu.Unlock()
	switch role {
	case election.RoleIdle:
		p.says(turnRole, "does not stand")
	case election.RoleCandidate:
		p.says(turnRole, "stands")
	case election.RoleHeir:
		p.says(turnRole, "is heir")
	case election.RoleLeader: // its work will say so
	}
}

// lead is the work.
func (p *process) lead(ctx context.Context, term *election.Term) error {
	p.mu.Lock()
	p.term = term
	role := p.role
	p.mu.Unlock()
	if role != election.RoleLeader {
		p.w.t.Errorf("%s leads, but was told that its role is %q", p.id, role)
	}
	p.w.begins(p, term)
	<-ctx.Done()
	p.sleeps()
	p.w.ends(term)
	p.says(turnEnd, "leads no more: %s", spoken(context.Cause(ctx)))
	if p.drains > 0 && !p.is(dead) {
		time.Sleep(p.drains)
		p.says(turnStopped, "has stopped its work")
	}
	p.mu.Lock()
	p.term = nil
	p.mu.Unlock()
	return nil
}

// sleeps returns when the process is not paused.
func (p *process) sleeps() {
	p.mu.Lock()
	awake := p.awake
	p.mu.Unlock()
	<-awake
}

// works reports whether the work of a term has not returned.
func (p *process) works(term *election.Term) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term == term
}

// leads returns the process's term, if it leads.
func (p *process) leads() (*election.Term, error) {
	if p.is(paused) {
		return nil, errors.New(p.id + " is paused: let it continue first")
	}
	p.mu.Lock()
	term := p.term
	p.mu.Unlock()
	if term == nil {
		return nil, errors.New(p.id + " does not lead")
	}
	return term, term.Err()
}

// pause stops the process, clocks and all.
func (p *process) pause() {
	if p.is(paused) {
		return
	}
	p.mu.Lock()
	p.frozen = time.Since(p.w.trace.began)
	p.awake = make(chan struct{})
	p.mu.Unlock()
	p.set(paused, true)
	p.view.On().Hang()
}

// goOn lets a paused process go on.
func (p *process) goOn() {
	if !p.is(paused) {
		return
	}
	p.set(paused, false)
	p.mu.Lock()
	close(p.awake)
	p.mu.Unlock()
	p.wire()
}

// reach puts the process within reach of the store, or not.
func (p *process) reach(does bool) {
	p.set(cutOff, !does)
	p.wire()
}

func (p *process) mute() { p.set(silent, true) }

func (p *process) is(c condition) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state[c]
}

func (p *process) set(c condition, now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[c] = now
	p.state[troubled] = p.state[troubled] || c != silent
}

// says adds to the trace.
func (p *process) says(turn int, format string, a ...any) {
	if !p.is(silent) {
		p.w.trace.add(turn, "%s "+format, append([]any{p.id}, a...)...)
	}
}
