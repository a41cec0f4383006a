package planted

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// Bugs that only candidates in a line can have, as views of a store with lines. Each
// is planted in a world in which there is a line, and where it says so, in one that
// exposes it.

// inLine is a view of the line that a candidate asks.
func inLine(bug func(n *sim.Node, line kv.Queue) kv.Queue) simulation.Engine {
	return simulation.Seeing(func(n *sim.Node) kv.Store { return views.Over(n.Store, bug(n, n.Store.(kv.Queue))) })
}

// lined has candidates wait in line, each of which gives its term up after a
// while, with old clients among them.
func lined(s *sim.Schedule) {
	s.Store.Lines = true
	for i := range s.Nodes {
		s.Nodes[i].Dwell = 2 * s.TTL
	}
	last := s.Horizon - 2*s.Bound() - 4*s.TTL
	for from := time.Duration(0); from < last; from += last / 8 {
		s.Faults = append(s.Faults, sim.Fault{Kind: sim.Foreign, Who: sim.Everybody, Window: sim.Window{From: from, To: from + s.TTL*3/2}})
	}
}

// oneWay leaves no other fault than that nothing comes back to one of the
// candidates, from some time on.
func oneWay(s *sim.Schedule) {
	s.Faults = []sim.Fault{{Kind: sim.CutReplies, Who: 0, Window: sim.Window{From: s.Horizon / 4, To: s.Horizon}}}
	lined(s)
}

// leaving has nothing go wrong but that candidates go and come.
func leaving(s *sim.Schedule) {
	s.Faults = nil
	for i := range s.Nodes {
		for from := s.TTL * time.Duration(4+i); from < s.Horizon/2; from += 5 * s.TTL {
			s.Faults = append(s.Faults, sim.Fault{Kind: sim.Away, Who: i, Window: sim.Window{From: from, To: from + s.TTL}})
		}
	}
	lined(s)
}

// fromTurn counts trust in a place from when a watch shows that it is first.
func fromTurn(_ *sim.Node, line kv.Queue) kv.Queue { return &turnCounter{Queue: line} }

type turnCounter struct {
	kv.Queue
	mu        sync.Mutex
	signature string    // of the place,
	stayed    time.Time // and when it was last kept
}

func (v *turnCounter) keeps(sent time.Time, place kv.Record, err error) {
	if err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.signature, v.stayed = place.Signature, sent
	}
}

// Join implements [kv.Queue].
func (v *turnCounter) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sent := time.Now()
	place, err := v.Queue.Join(ctx, name, rec)
	v.keeps(sent, place, err)
	return place, err
}

// Stay implements [kv.Queue].
func (v *turnCounter) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	sent := time.Now()
	place, leads, err := v.Queue.Stay(ctx, name, rec)
	v.keeps(sent, place, err)
	return place, leads, err
}

// Watch implements [kv.Store].
func (v *turnCounter) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Queue.Watch(ctx, name) {
			v.mu.Lock()
			if err == nil && rec.Signature != "" && rec.Signature == v.signature {
				rec.TTL += time.Since(v.stayed)
			}
			v.mu.Unlock()
			if !yield(rec, err) {
				return
			}
		}
	}
}

// fromReply counts trust in a place from when the answer came that it is kept.
func fromReply(_ *sim.Node, line kv.Queue) kv.Queue { return replyCounter{line} }

type replyCounter struct{ kv.Queue }

// Stay implements [kv.Queue].
func (v replyCounter) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	sent := time.Now()
	place, leads, err := v.Queue.Stay(ctx, name, rec)
	place.TTL += time.Since(sent)
	return place, leads, err
}

// credulous takes a place for kept whether or not the store says so, and goes on
// to keep it: a ghost in line.
func credulous(_ *sim.Node, line kv.Queue) kv.Queue { return ghost{line} }

type ghost struct{ kv.Queue }

// Stay implements [kv.Queue].
func (v ghost) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	place, leads, err := v.Queue.Stay(ctx, name, rec)
	if errors.Is(err, context.DeadlineExceeded) {
		return rec, false, nil
	}
	return place, leads, err
}

// hasty sees a vacancy between two owners of the safe, and takes it: its record is
// at the end of the line, but it leads.
func hasty(n *sim.Node) kv.Store { return vacancies{outside(n), n.Store.(kv.Queue)} }

type vacancies struct {
	kv.Store
	line kv.Queue
}

// Create implements [kv.Store].
func (v vacancies) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.line.Join(ctx, name, rec)
}

// Watch implements [kv.Store].
func (v vacancies) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		last := uint64(0)
		for rec, err := range v.Store.Watch(ctx, name) {
			if gone := last != 0 && rec.Token != last; gone && err == nil {
				rec, err = kv.Record{}, kv.ErrVacant
			}
			last = rec.Token
			if !yield(rec, err) {
				return
			}
		}
	}
}

// lateToken reports a new token for a record when it becomes first. So candidates that lead
// after waiting, and those that lead at once, count in two ways.
func lateToken(_ *sim.Node, line kv.Queue) kv.Queue { return twoCounts{line} }

const ahead = 1 << 20 // the one count is that much ahead of the other

type twoCounts struct{ kv.Queue }

// Create implements [kv.Store].
func (v twoCounts) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Queue.Create(ctx, name, rec)
	if err == nil {
		got.Token += ahead
	}
	return got, err
}

func trueToken(rec kv.Record) kv.Record {
	if rec.Token > ahead {
		rec.Token -= ahead
	}
	return rec
}

// Refresh implements [kv.Store].
func (v twoCounts) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Queue.Refresh(ctx, name, trueToken(rec))
	if err == nil {
		got.Token = rec.Token
	}
	return got, err
}

// Delete implements [kv.Store].
func (v twoCounts) Delete(ctx context.Context, name string, rec kv.Record) error {
	return v.Queue.Delete(ctx, name, trueToken(rec))
}

// Vacate implements [kv.Vacate].
func (v twoCounts) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	return v.Queue.(kv.Vacate).Vacate(ctx, name, trueToken(rec), place)
}

// staying never leaves the line: what keeps its place goes on until the place is
// lost, whatever has become of the campaign.
func staying(n *sim.Node, line kv.Queue) kv.Queue { return &stayer{Queue: line, node: n} }

type stayer struct {
	kv.Queue
	node *sim.Node
	mu   sync.Mutex
	led  map[string]bool // the signatures that had their turn
}

// Stay implements [kv.Queue].
func (v *stayer) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	place, leads, err := v.Queue.Stay(ctx, name, rec)
	v.note(place, leads)
	return place, leads, err
}

func (v *stayer) note(rec kv.Record, leads bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.led == nil {
		v.led = map[string]bool{}
	}
	v.led[rec.Signature] = v.led[rec.Signature] || leads
}

// Watch implements [kv.Store].
func (v *stayer) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Queue.Watch(ctx, name) {
			v.note(rec, true)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Delete goes on to keep a place that had no turn yet, until the world ends.
func (v *stayer) Delete(ctx context.Context, name string, rec kv.Record) error {
	v.mu.Lock()
	led, waited := v.led[rec.Signature]
	v.mu.Unlock()
	if led || !waited {
		return v.Queue.Delete(ctx, name, rec)
	}
	on, end := context.WithTimeout(context.WithoutCancel(ctx), v.node.Ends()-v.node.Now())
	go func() {
		defer end()
		for on.Err() == nil {
			bounded, cancel := context.WithTimeout(on, rec.TTL/3)
			_, _, err := v.Queue.Stay(bounded, name, rec)
			if errors.Is(err, kv.ErrStale) {
				end()
			}
			<-bounded.Done()
			cancel()
		}
	}()
	return nil
}

// outside waits for a vacancy, though others are in line.
func outside(n *sim.Node) kv.Store { return mistake.BesideLine(n.Store) }

// rude has the store put a record that joins before all that wait.
func rude(s *sim.Schedule) { s.Store.Rude = true }
