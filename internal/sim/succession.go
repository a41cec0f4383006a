package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
)

// An Order says which candidate is next, if any.
type Order string

// The orders.
const (
	NoOrder   Order = "" // none is
	FirstCome Order = "first"
	ByRank    Order = "rank"
	Ring      Order = "ring"
	ByList    Order = "list" // by the leaders' lists
)

// A Succession says how leaders succeed each other.
type Succession struct {
	Order     Order
	Stability time.Duration // zero means the engine's default
	MaxTerm   time.Duration
	Acts      []Act
}

// An Act is a request to the leader, or an action of it, at some time.
type Act struct {
	Verb Verb
	At   time.Duration
	IDs  []string
}

// A Verb is what is wanted.
type Verb string

// What a leader is told to do, and what others ask of it.
const (
	Transfer    Verb = "transfer"     // to hand over to IDs[0]
	SetHeirs    Verb = "set heirs"    // to publish IDs
	AskResign   Verb = "ask resign"   // to resign
	AskTransfer Verb = "ask transfer" // to hand over to IDs[0]
)

// ErrNoHeir is what a Term's Transfer returns if the candidate does not stand.
var ErrNoHeir = errors.New("sim: no such heir")

// steadiness returns for how long an heir must have stood for a leader to give way
// to it.
func (s *Schedule) steadiness() time.Duration {
	if s.Stability > 0 {
		return s.Stability
	}
	return 3 * s.TTL
}

// Steady reports whether a leader leads until something goes wrong or it has had
// enough: it does not give way.
func (s *Schedule) Steady() bool {
	ranks := false
	for _, n := range s.Nodes {
		ranks = ranks || n.Rank != s.Nodes[0].Rank
	}
	return s.MaxTerm == 0 && len(s.Acts) == 0 && (s.Order != ByRank || !ranks)
}

// lasting reports whether leaders never have enough, nor are told to go.
func (s *Schedule) lasting() bool {
	return s.MaxTerm == 0 && len(s.Acts) == 0 &&
		!slices.ContainsFunc(s.Nodes, func(n NodePlan) bool { return n.Dwell > 0 })
}

// heeds reports whether a candidate uses the succession.
func (s *Schedule) heeds(n NodePlan) bool { return s.Order != NoOrder && !n.Plain }

// act has the leader do something, or has a request sent to it.
func (w *World) act(a Act, asker *Node) {
	if a.Verb == AskResign || a.Verb == AskTransfer {
		w.ask(asker)
		return
	}
	for _, n := range w.nodes {
		if n.leads() {
			select {
			case n.acts <- a:
			default: // it is busy with another
			}
		}
	}
}

// ask sends a request to the leader from outside.
func (w *World) ask(asker *Node) {
	ctx, cancel := context.WithTimeout(context.Background(), w.Horizon-w.Now())
	defer cancel()
	_ = w.ready(asker)(ctx)
	asker.StandStill()
	time.Sleep(time.Microsecond)
	w.Note(history.Event{Who: asker.Name, Kind: history.Left, Count: int(asker.link.open.Load()), Text: "calls of the store"})
}

// Reply notes what has become of what an asker asked for since some time.
func (n *Node) Reply(since time.Duration, result string) {
	e := history.Event{Who: n.Name, Kind: history.Replied, Within: n.Now() - since, Op: "resign", Result: result}
	if n.Errand.Verb == AskTransfer {
		e.Op, e.Value = "transfer", n.Errand.IDs[0]
	}
	n.w.Note(e)
}

// do carries out a leader's act beside its work, and reports whether the work stops
// for it: a leader without Run hands over by itself, when the work has stopped.
func (n *Node) do(ctx context.Context, term Term, a Act) (stops bool) {
	switch {
	case a.Verb == SetHeirs:
		n.busy.Go(func() { _ = term.SetHeirs(ctx, a.IDs...) })
	case n.Plan.Style == ByCampaign:
		n.target = a.IDs[0]
		return true
	default:
		n.busy.Go(func() { n.transfer(ctx, term, a.IDs[0]) })
	}
	return false
}

// HandOver hands over to whom a leader was told to, whose work has stopped.
func (n *Node) HandOver(ctx context.Context, term Term) {
	if n.target == "" {
		return
	}
	target := n.target
	n.target = ""
	n.transfer(ctx, term, target)
	n.handOver(term.Token())
	n.campaigns()
}

// transfer hands over, and notes what that came to.
func (n *Node) transfer(ctx context.Context, term Term, to string) {
	e := history.Event{Who: n.Name, Kind: history.Transferred, Token: term.Token(), Value: to}
	err := term.Transfer(ctx, to)
	n.StandStill()
	e.Result = history.Unknown
	switch {
	case err == nil:
		e.Result = history.OK
	case errors.Is(err, ErrNoHeir):
		e.Result = history.NoHeir
	}
	if term.GaveUp() {
		e.Text = term.Err().Error()
	}
	n.w.Note(e)
	heir, _ := n.w.store.safe(history.Heir).queue()
	if err == nil && slices.Equal(heir, []string{to}) {
		n.passes(term.Token(), to)
	}
}

// passes notes that the safe goes to another candidate as soon as the work has stopped, if
// nothing is wrong by then.
func (n *Node) passes(token uint64, to string) {
	within := n.Plan.Lag + n.w.soon()
	if _, left := n.w.store.safe("").holder(); n.Plan.Style == ByCampaign && left < n.w.soon() {
		return // it may expire before, because it is not refreshed
	}
	if !n.w.Store.Lines && n.w.quiet(within) && n.w.Now() < n.w.Horizon-2*n.w.TTL-n.Plan.Lag {
		n.w.Note(history.Event{Who: n.Name, Kind: history.Passes, Token: token, Value: to, Within: within})
	}
}

// inherits notes that the heir has the safe next, if there is one that has stood
// for a while, and no other is about to be heir.
func (n *Node) inherits(token uint64) {
	enough := n.w.Now() - n.w.TTL
	heir, since := n.w.store.safe(history.Heir).queue()
	if !n.w.heeds(n.Plan) || len(heir) != 1 || heir[0] == n.Name || since > enough {
		return
	}
	for _, a := range n.w.Acts {
		if enough-n.w.TTL < a.At && a.At < n.w.Now()+n.w.TTL {
			return
		}
	}
	for _, other := range n.w.nodes {
		if other != n && !other.waits(enough) {
			return
		}
	}
	n.passes(token, heir[0])
}

// prefers notes which candidate must lead when nothing has been wrong for long enough for a
// leader to give way, with the longest wait that faults may have caused, and to
// stop its work.
func (w *World) prefers(calm Window) {
	after := w.steadiness()<<min(2*len(w.Faults), 6) + w.TTL
	for _, n := range w.Nodes {
		after = max(after, w.steadiness()<<min(2*len(w.Faults), 6)+w.TTL+n.Lag)
	}
	if best := w.best(); len(best) > 0 && w.lasting() && w.Now()+after < calm.To {
		time.AfterFunc(after, func() {
			w.Note(history.Event{Kind: history.Preferred, Value: strings.Join(best, " ")})
		})
	}
}

// peace lets a world in which nothing goes wrong begin.
func (w *World) peace() {
	last := time.Duration(0)
	for i, n := range w.Nodes {
		last = max(last, time.Duration(i)*w.TTL/50+time.Duration(i+1)+n.Joins)
	}
	if len(w.Faults) == 0 && w.Order != NoOrder {
		time.AfterFunc(last, func() {
			w.prefers(Window{last, w.Horizon})
			time.Sleep(w.Bound())
			w.idle(Window{last, w.Horizon})
		})
	}
}

// best returns the candidate with the highest rank, if ranks decide.
func (w *World) best() (names []string) {
	highest := 0
	for i, n := range w.nodes {
		if w.Order != ByRank || n.Plan.Plain {
			return nil
		}
		switch {
		case i == 0 || n.Plan.Rank > highest:
			highest, names = n.Plan.Rank, []string{n.Name}
		case n.Plan.Rank == highest:
			names = append(names, n.Name)
		}
	}
	return names
}

// idle notes the candidates that neither lead nor are next, and only have to wait.
func (w *World) idle(calm Window) {
	if w.Order == NoOrder {
		return
	}
	enough := w.Now() - w.TTL
	leader, led := w.store.safe("").queue()
	heir, stood := w.store.safe(history.Heir).queue()
	if len(leader) == 0 || len(heir) == 0 || led > enough || stood > enough || w.Store.Lines {
		return
	}
	within := time.Duration(0)
	if w.Steady() && w.lasting() {
		within = calm.To - w.Now() - 1
	}
	for _, n := range w.nodes {
		if w.heeds(n.Plan) && n.waits(enough) && n.Name != leader[0] && n.Name != heir[0] {
			w.Note(history.Event{Who: n.Name, Kind: history.Idle, Count: w.store.safe("").watches(n), Within: within})
		}
	}
}

// settled notes how often the leader may have changed in a world in which nothing
// has gone wrong, and for how long a candidate that comes and goes may have led.
func (w *World) settled() {
	if !w.lasting() {
		return
	}
	if len(w.Faults) == 0 {
		w.Note(history.Event{Kind: history.Settled, Count: len(w.Nodes)})
	}
	if who, longest, ok := w.flaps(); ok {
		w.Note(history.Event{Who: who, Kind: history.Share, Within: 3 * longest, Text: fmt.Sprintf("it comes back for %v each time", longest)})
	}
}

// flaps returns the candidate that is preferred to all others and crashes again and again, if
// nothing else goes wrong, and how long it is there at most. It leads once
// before it is known, and twice when it has been heir for long enough, if it ever
// is: the first strike costs nothing. Then it would have to be heir for twice as
// long, and is not there for that. No leader's work takes time to stop here. Otherwise a leader
// would hand over to an heir that has crashed meanwhile, and damping keeps no candidate from
// claiming a vacancy.
func (w *World) flaps() (who string, longest time.Duration, ok bool) {
	best := w.best()
	if len(best) != 1 || len(w.Faults) == 0 {
		return "", 0, false
	}
	others, last := 0, time.Duration(0)
	for _, n := range w.Nodes {
		if n.Lag > 0 {
			return "", 0, false
		}
		if n.Joins == 0 {
			others++
		}
	}
	for _, f := range w.Faults {
		if f.Kind != Crash || f.Who < 0 || w.nodes[f.Who].Name != best[0] || f.From < last || f.To-f.From < w.TTL/2 {
			return "", 0, false
		}
		longest, last = max(longest, f.From-last), f.To
	}
	longest = max(longest, w.Horizon-last)
	return best[0], longest, others > 1 && longest < 2*w.steadiness()*9/10
}
