package kvfault

import (
	"context"
	"errors"
	"iter"

	"github.com/electkv/election/kv"
)

// Watch implements [kv.Store]. The faults of [Watch] strike it at its start and
// while it runs.
func (v view) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		v.count(Watch)
		w := &watch{link: v.Link, ctx: ctx, name: name}
		w.rule, w.changed = v.strike(Watch)
		if !wait(ctx, w.rule.request) {
			yield(lost(ctx, Watch, name))
			return
		}
		inner, stop := v.follow(ctx, name)
		defer stop()
		w.inner = inner
		for {
			o := w.next()
			if !yield(o.rec, o.err) || o.final() {
				return
			}
		}
	}
}

// A sighting is what a watch yields once.
type sighting struct {
	rec kv.Record
	err error
}

// final reports whether o is the last thing that a watch yields.
func (o sighting) final() bool {
	return o.err != nil && !errors.Is(o.err, kv.ErrVacant)
}

// A watch is one loop over the store's own watch, with faults in between.
type watch struct {
	link    *Link
	ctx     context.Context
	name    string
	rule    rule
	changed <-chan struct{}
	inner   <-chan sighting
	pending *sighting // seen by the store's watch, and not yet yielded
}

// next waits for what comes next.
func (w *watch) next() sighting {
	for {
		switch w.rule.kind {
		case hang:
			<-w.changed
			w.rule, w.changed = w.link.strike(Watch)
			continue
		case fail, failReply:
			return sighting{err: w.rule.err}
		case dropReply:
			w.pending = nil
		case pass:
			if w.pending != nil {
				return w.deliver()
			}
		}
		select {
		case <-w.ctx.Done():
			return w.lost()
		case <-w.changed:
			w.rule, w.changed = w.link.strike(Watch)
		case o, ok := <-w.inner:
			if !ok { // it ended unheard
				w.inner = nil
				continue
			}
			w.pending = &o
		}
	}
}

// deliver hands out the pending sighting, if it comes through in time.
func (w *watch) deliver() sighting {
	o := *w.pending
	w.pending = nil
	if !wait(w.ctx, w.rule.reply) {
		return w.lost()
	}
	return o
}

func (w *watch) lost() sighting {
	rec, err := lost(w.ctx, Watch, w.name)
	return sighting{rec, err}
}

// follow reads the store's own watch. The channel is closed after the last
// thing that it yields; stop ends it and waits for its end.
func (l *Link) follow(ctx context.Context, name string) (states <-chan sighting, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan sighting)
	go func() {
		defer close(out)
		for rec, err := range l.inner.Watch(ctx, name) {
			select {
			case out <- sighting{rec, err}:
			case <-ctx.Done():
			}
		}
	}()
	return out, func() {
		cancel()
		for range out { // until it is closed
		}
	}
}
