package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/history"
)

// A World is one run of a schedule.
type World struct {
	Schedule
	born  time.Time
	store *store
	fence fence
	nodes []*Node
	ready func(*Node) Engine
	whom  []atomic.Int64 // each fault concerns, once it has begun

	mu      sync.Mutex
	history history.History
	over    bool
}

// An Engine campaigns as a node, and has it lead, until ctx ends or the node
// gives up a term.
type Engine func(ctx context.Context) error

var (
	errIll    = errors.New("sim: ill")
	errLeaves = errors.New("sim: had enough")
	errAway   = errors.New("sim: told to leave")
)

// Run runs a schedule in the calling goroutine's testing/synctest bubble, and
// returns what happened. ready makes each candidate's engine.
func Run(s Schedule, ready func(*Node) Engine) history.History {
	w := &World{Schedule: s, born: time.Now(), ready: ready}
	w.fence = fence{w: w}
	w.whom = make([]atomic.Int64, len(s.Faults))
	w.store = newStore(w)
	w.history.About = history.About{
		Title: "simulation", Seed: s.Seed, TTL: s.TTL, Margin: s.Margin, Life: s.Life(), Turn: s.Turn(), Requests: most,
	}
	if s.Order != NoOrder {
		w.history.Requests = mostOfHeir
	}
	w.history.Events = make([]history.Event, 0, 1<<12)
	for i, plan := range s.Nodes {
		w.nodes = append(w.nodes, newNode(w, i, plan))
		w.history.Drift = max(w.history.Drift, float64(max(plan.Rate, -plan.Rate))/1e6+rounding)
	}
	for i := range s.Faults {
		w.arrange(i)
	}
	for _, calm := range s.Calm() {
		time.AfterFunc(calm.From, func() { w.due(calm) })
	}
	w.peace()
	var lives sync.WaitGroup
	for i, n := range w.nodes {
		lives.Go(func() {
			time.Sleep(time.Duration(i)*s.TTL/50 + time.Duration(i+1) + n.Plan.Joins)
			w.live(n)
		})
	}
	for i, a := range s.Acts {
		asker := newNode(w, len(w.nodes)+i, NodePlan{})
		asker.Name, asker.Errand = fmt.Sprintf("asker %d", i), &a
		lives.Go(func() {
			time.Sleep(a.At)
			w.act(a, asker)
		})
	}
	lives.Wait()
	w.settled()
	return w.end()
}

// end returns what happened. What is still under way is not recorded any more.
func (w *World) end() history.History {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.history.Sort()
	return w.history
}

// rounding is how far from its rate a clock may be that counts nanoseconds.
const rounding = 1e-9

// How many requests a candidate may send within a TTL, and one that must be heir
// first: see the tests for what it takes when all goes wrong.
const (
	most       = 50
	mostOfHeir = 120
)

// Now returns the true time since the beginning of the world.
func (w *World) Now() time.Duration { return time.Since(w.born) }

// Note notes an event that happens now.
func (w *World) Note(e history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	e.At = w.Now()
	w.history.Events = append(w.history.Events, e)
}

// live lets a candidate campaign and lead until the end, except for the times at
// which it is away. A candidate that comes back remembers nothing.
func (w *World) live(n *Node) {
	engine := w.ready(n)
	for w.Now() < w.Horizon {
		if f, away := w.active(n, Away, Crash); away {
			n.remember()
			engine = w.ready(n)
			time.Sleep(f.To - w.Now() + time.Duration(n.Index))
			continue
		}
		w.stand(n, engine)
		time.Sleep(w.TTL/50 + time.Duration(n.Index)) // what was on its way has arrived
		w.leftBehind(n)
	}
}

// leftBehind notes whether a candidate that has left has left a record that keeps
// others out. A leader may have handed over to one that was leaving.
func (w *World) leftBehind(n *Node) {
	if !w.quiet(0, Away, Foreign, Leave) {
		return
	}
	left := history.Event{Who: n.Name, Kind: history.Left, Text: "its record in the safe"}
	if w.Order == NoOrder && w.store.safe("").isOf(n.Name) || w.store.safe(history.Heir).isOf(n.Name) {
		left.Count++
	}
	w.Note(left)
}

// stand runs a candidate's engine once: until it gives up a term, or has to
// leave.
func (w *World) stand(n *Node, engine Engine) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	n.leave.Store(&cancel)
	timer := time.AfterFunc(w.Horizon-w.Now()+time.Duration(n.Index), func() { cancel(errAway) })
	defer timer.Stop()
	w.Note(history.Event{Who: n.Name, Kind: history.Ready})
	n.campaigns()
	_ = engine(ctx)
	n.busy.Wait()
	n.StandStill()
	time.Sleep(time.Microsecond) // goroutines that stood still go on first
	left := history.Event{Who: n.Name, Kind: history.Left, Count: int(n.link.open.Load()), Text: "calls of the store"}
	if w.quiet(0, Away, Foreign, Leave) && n.stillIn() {
		left.Count, left.Text = left.Count+1, "its place in line"
	}
	w.Note(left)
}

// poll asks all leaders but one whether they lead. It does so in half of the
// schedules: to be asked tells a leader the time, which must not be needed.
func (w *World) poll(but *Node) {
	if w.chance(50, rollAsk) {
		return
	}
	for _, n := range w.nodes {
		if n != but {
			n.asked()
		}
	}
}

// promise notes that a candidate must lead soon, if nothing is wrong by then.
func (w *World) promise(who, text string, within time.Duration) {
	if w.quiet(within, LoseReply) {
		w.Note(history.Event{Kind: history.Due, Within: within, Text: fmt.Sprintf("%s of %s", text, who)})
	}
}

// quiet reports whether nothing but some kinds of faults is wrong from two TTL ago
// until within from now, and no message that they held up is on its way, nor a
// record alive that such a message has left.
func (w *World) quiet(within time.Duration, but ...Kind) bool {
	now, life := w.Now(), w.Life()
	settled := now - max(2*w.TTL, life+life/50)
	for _, f := range w.Faults {
		if f.From < now+within && f.End()+f.Size > settled && !slices.Contains(but, f.Kind) {
			return false
		}
	}
	return true
}

// due notes that a candidate must lead soon after the last fault, and that it
// then goes on leading as long as all is well.
func (w *World) due(calm Window) {
	w.Note(history.Event{Kind: history.Due, Within: w.Bound(), Text: "all was well again"})
	time.Sleep(w.Bound())
	for _, n := range w.nodes {
		if w.Steady() {
			n.keep(calm.To)
		}
	}
	w.queue()
	w.idle(calm)
	w.prefers(calm)
}

// turn notes that a candidate whose place has become the first must lead soon: it is
// well, and knows of its place. A candidate that has just lost the heir's safe gives its place
// up and campaigns again. The caller holds the store's mutex.
func (w *World) turn(who string, token uint64) {
	soon := w.soon()
	if w.Order != NoOrder && w.store.safe(history.Heir).since > w.Now()-soon {
		return
	}
	for _, n := range w.nodes {
		if n.Name == who && n.knows(token) && w.quiet(soon, Foreign) && w.Now() < w.Horizon-2*w.TTL {
			w.Note(history.Event{Kind: history.Due, Within: soon, Text: "it was the turn of " + who})
		}
	}
}

// queue notes which candidates have waited for long enough to be in line, and where they are.
func (w *World) queue() {
	owners, since := w.store.safe("").queue()
	enough := w.Now() - w.TTL
	if !w.Store.Lines || len(owners) == 0 || since > enough || !w.quiet(0, Foreign) {
		return
	}
	heir, stood := w.store.safe(history.Heir).queue()
	for _, n := range w.nodes {
		if n.waits(enough) && (!w.heeds(n.Plan) || slices.Equal(heir, []string{n.Name}) && stood <= enough) {
			w.Note(history.Event{Who: n.Name, Kind: history.Waits, Count: 1 + slices.Index(owners, n.Name)})
		}
	}
}

// soon is the time within which a candidate leads if nothing is wrong and it does not have to
// wait for another.
func (w *World) soon() time.Duration {
	if w.Order != NoOrder { // first there must be an heir
		return w.TTL/2 + 20*w.Delay
	}
	return w.TTL/4 + 10*w.Delay
}

// keep notes that a leader must go on leading until it gives up by itself.
func (n *Node) keep(until time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := n.w.Now(); n.term != nil && !n.stopped && n.term.Err() == nil && n.leaves > now {
		n.w.Note(history.Event{Who: n.Name, Kind: history.Keep, Token: n.token, Within: min(until, n.leaves) - now})
	}
}

// active returns the first fault of some kinds that a candidate suffers now.
func (w *World) active(n *Node, kinds ...Kind) (f Fault, found bool) {
	now := w.Now()
	for i := range w.Faults {
		f := &w.Faults[i]
		if f.From <= now && now < f.To && slices.Contains(kinds, f.Kind) && w.concerns(i, n) {
			return *f, true
		}
	}
	return Fault{}, false
}

// concerns reports whether a fault that has begun concerns a candidate.
func (w *World) concerns(fault int, n *Node) bool {
	who := int(w.whom[fault].Load())
	return who == n.Index || who == Everybody
}

// nobody is the target of a fault for the leader when there was none.
const nobody = -3

// settle decides whom a fault concerns that begins now.
func (w *World) settle(fault int) {
	f := w.Faults[fault]
	who := f.Who
	if who == Leader {
		who = nobody
		for _, n := range w.nodes {
			if n.leads() {
				who = n.Index
			}
		}
	}
	if who >= 0 && f.Kind == Suspend {
		if _, still := w.active(w.nodes[who], Suspend); still {
			who = nobody // a host is not suspended twice
		} else {
			w.nodes[who].suspend(f.Window)
		}
	}
	w.whom[fault].Store(int64(who))
}

// note notes the beginning or the end of a fault, if it concerns any process.
func (w *World) note(fault int, kind history.Kind) {
	who := w.whom[fault].Load()
	e := history.Event{Kind: kind, Text: string(w.Faults[fault].Kind)}
	if who >= 0 {
		e.Who = w.nodes[who].Name
	}
	if who != nobody {
		w.Note(e)
	}
}

// arrange sets when a fault begins and ends.
func (w *World) arrange(fault int) {
	f := w.Faults[fault]
	w.whom[fault].Store(nobody)
	from, to := history.Fault, history.Healed
	if f.Kind == Freeze || f.Kind == Suspend {
		from, to = history.Stopped, history.Woken
	}
	time.AfterFunc(f.From, func() {
		w.settle(fault)
		w.note(fault, from)
		w.begin(fault)
	})
	time.AfterFunc(f.To, func() {
		w.note(fault, to)
		switch f.Kind {
		case Restart, Anew:
			w.store.start(f.Kind == Anew)
		case Foreign:
			w.store.safe(f.Safe).dequeue(fault)
		}
	})
}

// begin does what a fault does at once.
func (w *World) begin(fault int) {
	switch f := w.Faults[fault]; f.Kind {
	case Restart, Anew:
		w.store.stop(f.Kind == Anew)
	case Foreign:
		w.queue()
		w.store.safe(f.Safe).enqueue(fault)
	case Remove:
		w.store.safe(f.Safe).empty()
	case Away, Crash:
		for _, n := range w.nodes {
			if leave := n.leave.Load(); leave != nil && w.concerns(fault, n) {
				(*leave)(errAway)
			}
		}
	}
}
