package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/kv"
)

// Bugs that only a succession can have.

// succeeding has nothing go wrong but that leaders have enough, again and again, and
// each hands over to the candidate that came first.
func succeeding(s *sim.Schedule) {
	s.Succession, s.Store.Lines = sim.Succession{Order: sim.FirstCome}, false
	s.Faults, s.Nodes = nil, slices.Concat(s.Nodes, make([]sim.NodePlan, max(3-len(s.Nodes), 0)))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Dwell, n.Plain, n.Rank, n.Joins = 5*s.TTL, false, 0, 0
	}
}

// succeedingBadly is the same with all the faults.
func succeedingBadly(s *sim.Schedule) {
	faults := slices.DeleteFunc(s.Faults, func(f sim.Fault) bool { return f.Kind == sim.Foreign })
	succeeding(s)
	s.Faults = faults
}

// handedLate has hand-overs come late, of whose record not much is left, and again
// and again nothing of a leader get through.
func handedLate(s *sim.Schedule) {
	succeeding(s)
	s.Store.Leases, s.Store.Whole, s.Store.Lazy = false, false, 0
	until := sim.Window{From: s.TTL, To: s.Horizon - 2*s.Bound() - 4*s.TTL}
	for i := range s.Nodes {
		s.Nodes[i].Dwell = s.TTL
		for range 10 {
			s.Faults = append(s.Faults, sim.Fault{Kind: sim.PauseBefore, Op: "swap", Who: i, Window: until, Size: s.TTL * 2 / 3})
		}
	}
	for from := until.From; from < until.To; from += 3 * s.TTL {
		s.Faults = append(s.Faults, sim.Fault{Kind: sim.CutRequests, Who: sim.Leader, Window: sim.Window{From: from, To: from + s.TTL}})
	}
}

// coming has candidates come one by one, each of a higher rank than those before,
// and nothing go wrong.
func coming(s *sim.Schedule) {
	succeeding(s)
	s.Order, s.Stability = sim.ByRank, 2*s.TTL
	for i := range s.Nodes {
		s.Nodes[i].Dwell, s.Nodes[i].Rank = 0, i
		s.Nodes[i].Joins = time.Duration(i) * s.TTL / 2
	}
}

// flapping has the candidate with the highest rank crash as soon as it has led for a
// while.
func flapping(s *sim.Schedule) {
	coming(s)
	s.Nodes, s.Store.Lazy, s.Stability, s.Horizon = s.Nodes[:2], 0, 4*s.TTL, 4*s.Horizon
	for i := range s.Nodes {
		s.Nodes[i].Joins, s.Nodes[i].Rank, s.Nodes[i].Lag = 0, 1-i, 0
	}
	for at := time.Duration(0); at < s.Horizon-2*s.Bound(); {
		at += s.Stability * 17 / 10
		f := sim.Fault{Kind: sim.Crash, Window: sim.Window{From: at, To: at + s.TTL}}
		s.Faults, at = append(s.Faults, f), f.To
	}
	s.Horizon = s.Faults[len(s.Faults)-1].To + s.Stability*17/10
}

// toldToTransfer has leaders told to hand over to a candidate that does not stand.
func toldToTransfer(s *sim.Schedule) { told(s, sim.Transfer) }

// askedToResign has leaders asked to resign.
func askedToResign(s *sim.Schedule) { told(s, sim.AskResign) }

func told(s *sim.Schedule, verb sim.Verb) {
	succeeding(s)
	for at := 2 * s.TTL; at < s.Horizon/2; at += 4 * s.TTL {
		s.Acts = append(s.Acts, sim.Act{Verb: verb, At: at, IDs: []string{"x"}})
	}
}

// toldAtOnce has leaders asked to resign and told to hand over to a candidate that does
// not stand, at about the same time.
func toldAtOnce(s *sim.Schedule) {
	succeeding(s)
	s.Delay = s.TTL / 100
	for i := range s.Nodes {
		s.Nodes[i].Style, s.Nodes[i].Dwell, s.Nodes[i].Lag = sim.ByRun, 0, 0
	}
	for at := 2 * s.TTL; at < s.Horizon-4*s.TTL; at += 2 * s.TTL {
		later := time.Duration(len(s.Acts)%24) * s.Delay / 4
		s.Acts = append(s.Acts,
			sim.Act{Verb: sim.AskResign, At: at},
			sim.Act{Verb: sim.Transfer, At: at + later, IDs: []string{"x"}})
	}
}

// choosing is the real engine with other options.
func choosing(change func(*election.Options)) simulation.Engine {
	return func(n *simulation.Node) sim.Engine { return n.Run(n.Store, n.Schedule().Margin, change) }
}

// immovable gives way after a year.
func immovable(o *election.Options) { o.Stability = 365 * 24 * time.Hour }

// restless is an order in which everybody comes before the leader.
func restless(o *election.Options) {
	o.Succession = func(leader, a, b election.Contender) bool { return b.ID == leader.ID && a.ID != b.ID }
	o.Stability = o.TTL
}

// handedOnSight takes a record that it finds for one that it has refreshed.
func handedOnSight(n *sim.Node) kv.Store { return &onSight{Store: n.Store, own: map[uint64]bool{}} }

type onSight struct {
	kv.Store
	mu  sync.Mutex
	own map[uint64]bool // tokens that it was given by a create, or has taken for its own
}

func (v *onSight) note(token uint64) (known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, v.own[token] = v.own[token], true
	return known
}

// Create implements [kv.Store].
func (v *onSight) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Store.Create(ctx, name, rec)
	v.note(got.Token)
	return got, err
}

// Refresh implements [kv.Store].
func (v *onSight) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if name == "sim" && !v.note(rec.Token) {
		return rec, nil
	}
	return v.Store.Refresh(ctx, name, rec)
}

// inTwoWrites deletes and creates where it should swap.
func inTwoWrites(n *sim.Node) kv.Store { return twoWrites{n.Store} }

type twoWrites struct{ kv.Store }

// Swap implements [kv.Store].
func (v twoWrites) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if old.Signature == next.Signature || name != "sim" {
		return v.Store.Swap(ctx, name, old, next)
	}
	if err := v.Delete(ctx, name, old); err != nil {
		return kv.Record{}, err
	}
	return v.Create(ctx, name, next)
}

// whateverIsThere puts the heir's signature in the place of any record.
func whateverIsThere(store kv.Store) kv.Store { return blindSwap{store} }

type blindSwap struct{ kv.Store }

// Swap implements [kv.Store].
func (v blindSwap) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	got, err := v.Store.Swap(ctx, name, old, next)
	if old.Signature == next.Signature || name != "sim" || !errors.Is(err, kv.ErrStale) {
		return got, err
	}
	there, looked := v.Get(ctx, name)
	if looked != nil {
		return got, err
	}
	return v.Store.Swap(ctx, name, there, next)
}

// stubborn has the second candidate not hear that it is the heir no more.
func stubborn(n *sim.Node) kv.Store {
	if n.Index != 1 {
		return n.Store
	}
	return deafHeir{n.Store}
}

type deafHeir struct{ kv.Store }

// Refresh implements [kv.Store].
func (v deafHeir) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Store.Refresh(ctx, name, rec)
	if name != "sim" && errors.Is(err, kv.ErrStale) {
		return rec, nil
	}
	return got, err
}

// Swap implements [kv.Store].
func (v deafHeir) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	got, err := v.Store.Swap(ctx, name, old, next)
	if name != "sim" && errors.Is(err, kv.ErrStale) && old.Signature == next.Signature {
		return next, nil
	}
	return got, err
}

// rash gives its term up before it knows whether there is an heir to hand over to.
var rash = leading(func(ctx context.Context, n *simulation.Node, c *election.Candidate) error {
	return c.Run(ctx, func(ctx context.Context, term *election.Term) error {
		return n.Lead(ctx, quitter{n.Term(term)})
	})
})

type quitter struct{ *simulation.Term }

// Transfer implements [sim.Term].
func (t quitter) Transfer(context.Context, string) error {
	t.Quit()
	return fmt.Errorf("rash: %w", sim.ErrNoHeir)
}

// hurried believes that the leader has gone as soon as it has asked it to.
func hurried(n *sim.Node) kv.Store {
	if n.Errand == nil {
		return n.Store
	}
	return gone{n.Store}
}

type gone struct{ kv.Store }

// Watch implements [kv.Store].
func (v gone) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	if history.SafeOf(name) != "" {
		return v.Store.Watch(ctx, name)
	}
	return func(yield func(kv.Record, error) bool) { yield(kv.Record{}, kv.ErrVacant) }
}

// unstruck leaves out of all notes whose terms have ended early.
func unstruck(store kv.Store) kv.Store { return noStrikes{store} }

type noStrikes struct{ kv.Store }

// Create implements [kv.Store].
func (v noStrikes) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.Store.Create(ctx, name, forget(rec))
}

// Swap implements [kv.Store].
func (v noStrikes) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return v.Store.Swap(ctx, name, old, forget(next))
}

func forget(rec kv.Record) kv.Record {
	var n map[string]any
	if json.Unmarshal([]byte(rec.Note), &n) == nil && strings.Contains(rec.Note, "strikes") {
		delete(n, "strikes")
		if under, ok := n["under"].(map[string]any); ok {
			delete(under, "strikes")
		}
		text, _ := json.Marshal(n)
		rec.Note = string(text)
	}
	return rec
}

// unawaited does not wait for the answer to a call for an heir.
func unawaited(n *sim.Node) kv.Store { return callAndGo{n.Store} }

type callAndGo struct{ kv.Store }

var errNotAwaited = errors.New("callAndGo: the answer is not awaited")

// Create implements [kv.Store].
func (v callAndGo) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if !strings.Contains(rec.Note, `"calls"`) {
		return v.Store.Create(ctx, name, rec)
	}
	go func() { _, _ = v.Store.Create(context.WithoutCancel(ctx), name, rec) }()
	return kv.Record{}, errNotAwaited
}

// Swap implements [kv.Store].
func (v callAndGo) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if !strings.Contains(next.Note, `"calls"`) {
		return v.Store.Swap(ctx, name, old, next)
	}
	go func() { _, _ = v.Store.Swap(context.WithoutCancel(ctx), name, old, next) }()
	return kv.Record{}, errNotAwaited
}
