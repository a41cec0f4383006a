package planted

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/kv"
)

// Bugs that only observers can have: in the observer's clock, and in the conclusions
// that it draws from the register.

// judgedBy is the real engine on the real judge, with another clock.
func judgedBy(clock func(*sim.Node) func() (mono, boot time.Duration)) simulation.Engine {
	return simulation.Seeing(func(n *sim.Node) kv.Store { return n.Observe(n.Judging(n.Cells(), clock(n))) })
}

// cells is the real engine on the real judge, above a view of the register.
func cells(view func(observer.Register) observer.Register) simulation.Engine {
	return simulation.Seeing(func(n *sim.Node) kv.Store { return n.Observe(n.Judging(view(n.Cells()), n.ReadToJudge)) })
}

// crowd has three candidates at least, none of which is preferred.
func crowd(s *sim.Schedule) {
	simulation.Observed(s)
	s.Succession = sim.Succession{}
	for len(s.Nodes) < 3 {
		s.Nodes = append(s.Nodes, sim.NodePlan{})
	}
	for i := range s.Nodes {
		s.Nodes[i].Joins = 0
	}
}

// robbed has one candidate, whose record an operator removes again and again.
func robbed(s *sim.Schedule) {
	crowd(s)
	s.Nodes = s.Nodes[:1]
	s.Nodes[0].Dwell, s.Nodes[0].Leap = 0, sim.Window{}
	s.Faults = nil
	for at := 2*s.TTL + s.TTL/20; at < s.Horizon-2*s.Bound(); at += 5 * s.TTL {
		s.Faults = append(s.Faults, sim.Fault{Kind: sim.Remove, Who: sim.Everybody, Window: sim.Window{From: at, To: at + 1}})
	}
}

// boldest believes the clock that is ahead.
func boldest(n *sim.Node) func() (mono, boot time.Duration) {
	return func() (time.Duration, time.Duration) {
		mono, boot := n.ReadToJudge()
		return max(mono, boot), max(mono, boot)
	}
}

// impatient gives a record two thirds of its time.
func impatient(n *sim.Node) func() (mono, boot time.Duration) {
	return func() (time.Duration, time.Duration) {
		mono, boot := n.ReadToJudge()
		return mono * 3 / 2, boot * 3 / 2
	}
}

// leaping sets the wall clock of each candidate forward.
func leaping(s *sim.Schedule) {
	crowd(s)
	for i := range s.Nodes {
		s.Nodes[i].Leap = sim.Window{From: time.Duration(5+10*i)*s.TTL + s.TTL/3, To: 2 * s.TTL}
	}
}

// still has refreshes leave the revision as it is.
func still(s *sim.Schedule) { s.Store.Still = true }

// altered changes what a register says of records, and finds again what they were
// when they are given back.
type altered struct {
	observer.Register
	alter func(kv.Record) kv.Record

	mu   sync.Mutex
	true map[string]kv.Record // by name, as it was said last
}

func altering(alter func(kv.Record) kv.Record) func(observer.Register) observer.Register {
	return func(reg observer.Register) observer.Register {
		return &altered{Register: reg, alter: alter, true: map[string]kv.Record{}}
	}
}

func (v *altered) out(name string, rec kv.Record, err error) (kv.Record, error) {
	if err != nil {
		return rec, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.true[name] = rec
	return v.alter(rec), nil
}

func (v *altered) in(name string, rec kv.Record) kv.Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	if said := v.true[name]; rec != (kv.Record{}) && v.alter(said).Owns(rec) {
		return said
	}
	return rec
}

// Get implements [observer.Register].
func (v *altered) Get(ctx context.Context, name string) (kv.Record, error) {
	rec, err := v.Register.Get(ctx, name)
	return v.out(name, rec, err)
}

// Put implements [observer.Register].
func (v *altered) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := v.Register.Put(ctx, name, v.in(name, old), next)
	return v.out(name, rec, err)
}

// Remove implements [observer.Register].
func (v *altered) Remove(ctx context.Context, name string, old kv.Record) error {
	return v.Register.Remove(ctx, name, v.in(name, old))
}

// Watch implements [observer.Register].
func (v *altered) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Register.Watch(ctx, name) {
			if !yield(v.out(name, rec, err)) {
				return
			}
		}
	}
}

// fromFirstSight counts from the first sighting of an owner, whatever revisions came
// since.
func fromFirstSight(rec kv.Record) kv.Record {
	rec.Revision = rec.Token
	return rec
}

// disrespectful takes a foreign record for one that can be judged.
func disrespectful(ttl time.Duration) func(kv.Record) kv.Record {
	return func(rec kv.Record) kv.Record {
		if rec.Foreign {
			rec.Foreign, rec.Permanent, rec.Signature, rec.TTL = false, false, rec.Value, ttl
		}
		return rec
	}
}

// judgesForeign is the real engine on a judge that judges foreign records too.
func judgesForeign(n *simulation.Node) sim.Engine {
	return cells(altering(disrespectful(n.Schedule().TTL)))(n)
}

// overwhelming takes over whatever is there when it comes to that.
func overwhelming(reg observer.Register) observer.Register { return overwhelms{reg} }

type overwhelms struct{ observer.Register }

// Put implements [observer.Register].
func (v overwhelms) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if old.Signature != "" && old.Signature != next.Signature {
		if there, err := v.Get(ctx, name); err == nil && !there.Foreign {
			old = there
		}
	}
	return v.Register.Put(ctx, name, old, next)
}

// reviving refreshes a record into an empty cell.
func reviving(reg observer.Register) observer.Register { return revives{reg} }

type revives struct{ observer.Register }

// Put implements [observer.Register].
func (v revives) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := v.Register.Put(ctx, name, old, next)
	if old.Signature == next.Signature && errors.Is(err, kv.ErrStale) {
		rec, err = v.Register.Put(ctx, name, kv.Record{}, next)
	}
	return rec, err
}
