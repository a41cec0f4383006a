package sim

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A Node is a candidate's process on its host.
type Node struct {
	w     *World
	link  *link
	Index int
	Name  string
	Plan  NodePlan
	Link  kv.Store // its way to the store
	Store kv.Store // the same, which notes what the candidate asks
	// Errand is what this process asks of the leader from outside; nil in those of
	// candidates.
	Errand *Act

	paused   atomic.Pointer[Window] // the last time that it stood still at one call
	clock    atomic.Pointer[Clock]
	leave    atomic.Pointer[context.CancelCauseFunc] // tells it to leave
	standing atomic.Int64                            // how many goroutines stand still
	mu       sync.Mutex
	term     Term
	token    uint64
	until    time.Duration // the trust that was noted last, in true time
	leaves   time.Duration // when it gives the term up by itself
	stopped  bool          // the term's end was noted
	since    time.Duration // when its campaign began
	place    uint64        // the token of its place in line, as it was told last,
	told     time.Duration // and when
	terms    uint64
	acts     chan Act       // that it is told to do
	busy     sync.WaitGroup // with those
	target   string         // whom it is to hand over to when its work has stopped
}

// A Term is what a candidate under test holds while it leads.
type Term interface {
	Token() uint64
	// Err returns nil while the candidate trusts its lease at this moment.
	Err() error
	// Trusted returns until which true time it does so, as things are.
	Trusted() time.Duration
	// Proclaim publishes a value.
	Proclaim(ctx context.Context, value string) error
	// Quit ends the term before the work has returned; it does nothing where an
	// engine cannot do that.
	Quit()
	// GaveUp reports whether the term has ended because its leader, or its engine,
	// gave it up.
	GaveUp() bool
	// Transfer hands over to a candidate. The error is ErrNoHeir if that does not
	// stand.
	Transfer(ctx context.Context, id string) error
	// SetHeirs publishes whom the leader wants after it.
	SetHeirs(ctx context.Context, ids ...string) error
}

func newNode(w *World, index int, plan NodePlan) *Node {
	n := &Node{w: w, Index: index, Name: string(rune('a' + index)), Plan: plan, acts: make(chan Act, 1), since: never}
	n.clock.Store(&Clock{Rate: plan.Rate, Deaf: plan.Deaf})
	n.link = newLink(n)
	n.remember()
	return n
}

// Observe returns a view of a store that notes what the candidate asks of it.
func (n *Node) Observe(store kv.Store) kv.Store { return history.Observe(store, n.note) }

// Lapsed reports whether the safe is vacant because a record has expired.
func (n *Node) Lapsed() bool { return n.w.store.safe("").isLapsed() }

// note notes what the candidate asks of the store, and looks at what it makes of
// the answers.
func (n *Node) note(e history.Event) {
	e.Who = n.Name
	n.w.Note(e)
	if e.Safe != "" {
		return
	}
	if e.Kind == history.Answered && (e.Op == history.OpRefresh || e.Op == history.OpSwap || e.Op == history.OpHandOver) {
		time.AfterFunc(1, func() { n.look(e.Result) }) // when it has taken the answer in
	}
	if e.Kind == history.Answered && (e.Op == history.OpJoin || e.Op == history.OpStay) && e.Result == history.OK {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.place, n.told = e.Token, n.w.Now()
	}
}

// knows reports whether the candidate was told lately that it has a place.
func (n *Node) knows(token uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term == nil && n.place == token && token != 0 && n.w.Now()-n.told < n.w.TTL
}

// stillIn reports whether the place is in line that the candidate was told of last.
func (n *Node) stillIn() bool {
	n.mu.Lock()
	place := n.place
	n.mu.Unlock()
	return place != 0 && n.w.store.safe("").has(place)
}

// campaigns notes that a campaign begins.
func (n *Node) campaigns() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term, n.since = nil, n.w.Now()
}

// waits reports whether the candidate has campaigned since some time ago.
func (n *Node) waits(since time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term == nil && n.since <= since
}

// look notes what an answer to a refresh has done to the term: it is trusted
// longer than before, or it has ended. An answer to a swap must do the former to
// none: the rules will tell.
func (n *Node) look(result string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == nil || n.stopped {
		return
	}
	if result == history.Stale {
		if err := n.term.Err(); err != nil {
			n.end(err)
		}
		return
	}
	if until := n.term.Trusted(); until > n.until {
		n.until = until
		n.w.Note(history.Event{Who: n.Name, Kind: history.Extended, Token: n.token, Until: until})
	}
}

// Clock returns the host's clocks, as far as it was suspended until now.
func (n *Node) Clock() Clock { return *n.clock.Load() }

// suspend lets the monotonic clock stand still.
func (n *Node) suspend(w Window) {
	clock := n.Clock()
	clock.Sleeps = append(slices.Clone(clock.Sleeps), w)
	n.clock.Store(&clock)
	n.look(history.OK) // a candidate that reads only that clock now trusts its lease for longer
}

// Now returns the true time since the beginning of the world.
func (n *Node) Now() time.Duration { return n.w.Now() }

// Schedule returns the schedule of the world that it is in.
func (n *Node) Schedule() *Schedule { return &n.w.Schedule }

// Heeds reports whether the candidate uses the succession.
func (n *Node) Heeds() bool { return n.w.heeds(n.Plan) }

// Ends returns when all candidates are told to leave.
func (n *Node) Ends() time.Duration { return n.w.Horizon }

// Jitter returns a duration in [0, most) that the seed decides.
func (n *Node) Jitter(most time.Duration) time.Duration {
	return n.w.below(most, rollJitter, uint64(n.Index), uint64(n.w.Now()))
}

// Healthy is the candidate's health check.
func (n *Node) Healthy(ctx context.Context) error {
	f, ill := n.w.active(n, Ill)
	switch {
	case !ill:
		return nil
	case f.Op == Hangs:
		<-ctx.Done()
	case f.Op == Lags:
		time.Sleep(f.Size)
		return nil
	}
	return errIll
}

// Read returns what the host's two clocks show to the candidate. A process that
// stands still reads no clock: what its timers read meanwhile, as they cannot be
// stopped here, is the time at which it was stopped.
func (n *Node) Read() (mono, boot time.Duration) {
	now := n.w.Now()
	if still, frozen := n.stands(now); frozen {
		now = still.From
	}
	clock := n.Clock()
	return clock.Mono(now), clock.Boot(now)
}

// StandStill returns at once, or when the candidate's process goes on if it
// stands still at this time. Goroutines that stand still go on one after the other, a
// nanosecond apart.
func (n *Node) StandStill() {
	place := time.Duration(n.standing.Add(1))
	defer n.standing.Add(-1)
	for {
		now := n.w.Now()
		still, frozen := n.stands(now)
		if !frozen {
			return
		}
		time.Sleep(still.To - now + place)
	}
}

// stands returns from when to when the process stands still, if it does.
func (n *Node) stands(now time.Duration) (still Window, frozen bool) {
	if p := n.paused.Load(); p != nil && now < p.To {
		still, frozen = *p, true
	}
	if f, ok := n.w.active(n, Freeze, Suspend); ok {
		if !frozen {
			still.From = f.From
		}
		still.From, still.To, frozen = min(still.From, f.From), max(still.To, f.To), true
	}
	return still, frozen
}

// Lead is the work of a leader: it notes that it was elected, works until ctx
// ends or it has had enough, and returns when it has stopped.
func (n *Node) Lead(ctx context.Context, term Term) error {
	n.Begin(term)
	n.Work(ctx, term)
	n.Finish(term, context.Cause(ctx))
	return nil
}

// Begin notes that the candidate was elected and is told to work, and asks
// all other leaders whether they still believe that they lead.
func (n *Node) Begin(term Term) {
	n.mu.Lock()
	n.terms++
	n.term, n.token, n.stopped = term, term.Token(), false
	n.until = term.Trusted()
	n.leaves = never
	if dwell := n.Plan.Dwell; dwell > 0 {
		n.leaves = n.w.Now() + n.w.TTL/20 + n.w.below(dwell, rollDwell, uint64(n.Index), n.terms)
	}
	n.w.Note(history.Event{Who: n.Name, Kind: history.Elected, Token: n.token, Until: n.until})
	n.w.Note(history.Event{Who: n.Name, Kind: history.Started, Token: n.token})
	n.mu.Unlock()
	n.w.poll(n)
}

// leads reports whether the candidate was elected and has not noted its end.
func (n *Node) leads() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term != nil && !n.stopped
}

// asked notes that the candidate thinks that it leads, if it does.
func (n *Node) asked() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, frozen := n.stands(n.w.Now()); frozen {
		return // no process is there to answer
	}
	if n.term != nil && !n.stopped && n.term.Err() == nil {
		n.w.Note(history.Event{Who: n.Name, Kind: history.Worked, Token: n.token})
	}
}

// Work works in steps, and asks before each of them whether it may.
func (n *Node) Work(ctx context.Context, term Term) {
	step := time.NewTimer(n.step())
	defer step.Stop()
	for told := false; ; {
		n.StandStill()
		now := n.w.Now()
		if told || n.over(ctx, term) {
			return
		}
		n.w.Note(history.Event{Who: n.Name, Kind: history.Worked, Token: term.Token()})
		n.write(term)
		if now >= n.leaves {
			return
		}
		if n.w.chance(5, rollWork, uint64(n.Index), uint64(now)) {
			_ = term.Proclaim(ctx, "busy")
		}
		step.Reset(min(n.step(), max(n.leaves-n.w.Now(), 1)))
		select {
		case <-ctx.Done():
			told = true
		case a := <-n.acts:
			told = n.do(ctx, term, a)
		case <-step.C:
		}
	}
}

// over asks whether the work is over.
func (n *Node) over(ctx context.Context, term Term) bool {
	switch n.Plan.Asks {
	case AskContext:
		return ctx.Err() != nil
	case AskTerm:
		return term.Err() != nil
	case AskBoth:
	}
	return ctx.Err() != nil || term.Err() != nil
}

func (n *Node) step() time.Duration {
	return n.w.TTL/7 + n.w.below(n.w.TTL/3, rollWork, uint64(n.Index), uint64(n.w.Now()), 1)
}

// write writes to the resource that the leader's work is about. Between the
// question whether it leads and the write's arrival any time may pass.
func (n *Node) write(term Term) {
	token := term.Token()
	time.AfterFunc(1+n.link.delay(rollWork, n.link.request("", "write")), func() { n.w.fence.take(n, token) })
}

// Finish notes the term's end and stops the work, which may take a while: it is
// the leader's as long as the lease is kept.
func (n *Node) Finish(term Term, cause error) {
	gaveUp := term.Err() == nil
	if n.Plan.Style != ByCampaign && n.w.chance(50, rollLag, uint64(n.Index), n.terms) {
		term.Quit()
	}
	ended, lag := term.Err(), n.lag()
	gaveUp = gaveUp || n.w.heeds(n.Plan) && term.GaveUp()
	switch {
	case ended != nil:
		n.ends(ended)
	case n.w.Steady() && n.w.quiet(lag, Away): // the lease is kept while the work goes on
		n.w.Note(history.Event{Who: n.Name, Kind: history.Keep, Token: term.Token(), Within: lag})
	}
	time.Sleep(lag)
	n.StandStill()
	if ended == nil {
		gaveUp = term.Err() == nil || n.w.heeds(n.Plan) && term.GaveUp()
		if cause == nil {
			cause = errLeaves
		}
		n.ends(cause)
	}
	n.w.Note(history.Event{Who: n.Name, Kind: history.Finished, Token: term.Token()})
	if gaveUp && n.target == "" {
		n.handOver(term.Token())
	}
	n.campaigns()
}

// handOver notes that a candidate, this one or another, must lead soon after a term that was
// given up: the record does not have to expire first.
func (n *Node) handOver(token uint64) {
	if held, _ := n.w.store.safe("").holder(); held != token && held != 0 {
		return // it was another's before: that one may take its time
	}
	n.inherits(token)
	soon := n.w.soon()
	if n.w.quiet(soon) && n.w.Now() < n.w.Horizon-2*n.w.TTL {
		n.w.Note(history.Event{Kind: history.Due, Within: soon, Text: n.Name + " gave its term up"})
	}
}

func (n *Node) ends(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end(cause)
}

// end notes the end of the term, once. The caller holds the mutex.
func (n *Node) end(cause error) {
	if n.stopped {
		return
	}
	n.stopped = true
	n.w.Note(history.Event{Who: n.Name, Kind: history.Ended, Token: n.token, Text: cause.Error()})
}

// lag returns how long the work takes to stop: often no time at all.
func (n *Node) lag() time.Duration {
	if n.w.chance(50, rollLag, uint64(n.Index), n.terms, 1) {
		return 0
	}
	return n.w.below(n.Plan.Lag+1, rollLag, uint64(n.Index), n.terms, 2)
}
