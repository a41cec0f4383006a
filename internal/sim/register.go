package sim

import (
	"context"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// Cells are a candidate's way to a store that judges nothing, as an
// [observer.Register].
type cells struct{ *link }

// Judging returns a view of a register for the candidate, which judges by the clock
// whether records live.
func (n *Node) Judging(reg observer.Register, clock func() (mono, boot time.Duration)) kv.Store {
	return named{observer.New(reg, &observer.Options{Clock: clock, Span: n.span})}
}

// span returns the true time in which the host's clocks go on by d.
func (n *Node) span(d time.Duration) time.Duration {
	now := n.w.Now()
	return n.Clock().After(now, d) - now
}

// Cells returns the candidate's way to a store that does not judge expiry.
func (n *Node) Cells() observer.Register { return cells{n.link} }

// ReadToJudge returns what the host's clocks show for judging records: the one
// that goes on through a suspend may have been set forward.
func (n *Node) ReadToJudge() (mono, boot time.Duration) {
	mono, boot = n.Read()
	if leap := n.Plan.Leap; leap.To > 0 && n.w.Now() >= leap.From {
		boot += leap.To
	}
	return mono, boot
}

// remember gives the candidate its way to the store, as a process has it that has
// just begun.
func (n *Node) remember() {
	plan, parts := n.w.Store, views.Parts{}
	if plan.Lines {
		parts.Queue = n.link
	}
	if plan.Whole {
		parts.HandOver, parts.Vacate = n.link, n.link
	}
	n.Link = parts.With(n.link)
	if plan.Expiry == ByObserver {
		n.Link = n.Judging(n.Cells(), n.ReadToJudge)
	}
	n.Store = n.Observe(n.Link)
}

// Named tells the register for which operation it is asked.
type named struct{ *observer.Store }

type opKey struct{}

func naming(ctx context.Context, op string) context.Context {
	return context.WithValue(ctx, opKey{}, op)
}

// Create implements [kv.Store].
func (s named) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.Store.Create(naming(ctx, history.OpCreate), name, rec)
}

// Swap implements [kv.Store].
func (s named) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return s.Store.Swap(naming(ctx, history.OpSwap), name, old, next)
}

// Refresh implements [kv.Store].
func (s named) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.Store.Refresh(naming(ctx, history.OpRefresh), name, rec)
}

// Delete implements [kv.Store].
func (s named) Delete(ctx context.Context, name string, rec kv.Record) error {
	return s.Store.Delete(naming(ctx, history.OpDelete), name, rec)
}

// change asks the store to carry out a write, for whatever operation that is.
func (c cells) change(ctx context.Context, name string, do func(*safe, caller) answer) (kv.Record, error) {
	op, _ := ctx.Value(opKey{}).(string)
	a := c.write(ctx, name, op, do)
	return a.rec, a.err
}

// Put implements [observer.Register].
func (c cells) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return c.change(ctx, name, func(f *safe, by caller) answer { return f.put(by, old, next) })
}

// Remove implements [observer.Register].
func (c cells) Remove(ctx context.Context, name string, old kv.Record) error {
	_, err := c.change(ctx, name, func(f *safe, by caller) answer {
		if !f.at(old) {
			return answer{err: kv.ErrStale}
		}
		return f.remove(by, old)
	})
	return err
}

// Check implements [observer.Register].
func (c cells) Check(time.Duration) error { return nil }

// at reports whether the safe holds old at its revision.
func (f *safe) at(old kv.Record) bool {
	return f.find(old) == 0 && f.line[0].rec.Revision == old.Revision
}

// put writes next in the place of old, or into a vacant safe.
func (f *safe) put(by caller, old, next kv.Record) answer {
	switch {
	case old == (kv.Record{}) && len(f.line) == 0:
		return f.add(by, next)
	case old == (kv.Record{}) || !f.at(old):
		return answer{err: kv.ErrStale}
	}
	p := f.line[0]
	if next.Signature != old.Signature {
		return f.handOver(by, p, next, true)
	}
	refreshed := p.rec.Value == next.Value && p.rec.Note == next.Note
	p.rec.Value, p.rec.Note = next.Value, next.Note
	if !f.w.Store.Still || !refreshed {
		p.rec.Revision = f.next()
	}
	f.note(by, p.rec.Token)
	f.live(p.life, f.w.Now(), f.span(p.rec))
	return answer{rec: p.rec}
}
