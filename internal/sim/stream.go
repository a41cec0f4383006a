package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/electkv/election/kv"
)

// A sight is what a watch is told: the safe's state, or that the watch is over.
type sight struct {
	rec    kv.Record
	broken bool
}

// A stream carries what a watch is told from the store to the candidate, in
// order. What is lost of it is lost for good; a look now and then finds out, as
// in every adapter.
type stream struct {
	l      *link
	of     request
	latest chan sight
	last   time.Duration // when the last sight arrives
	gone   bool          // its reader has gone; guarded by the store's mutex
}

// push sends a sight on its way. The caller holds the store's mutex.
func (st *stream) push(s sight) {
	l := st.l
	if l.lost(CutReplies, rollPush, st.of) {
		return
	}
	now := l.w.Now()
	st.last = max(now+l.delay(rollPush, st.of), st.last+1)
	time.AfterFunc(st.last-now, func() { st.put(s) })
}

// put replaces a sight that was not received yet.
func (st *stream) put(s sight) {
	select {
	case old := <-st.latest:
		s.broken = s.broken || old.broken
	default:
	}
	st.latest <- s
}

// Watch implements [kv.Store].
func (l *link) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		l.open.Add(1)
		defer l.open.Add(-1)
		w := watch{link: l, name: name, of: l.request(name, "watch"), yield: yield}
		for w.more = true; w.more && ctx.Err() == nil; {
			w.listen(ctx)
		}
		if w.more {
			yield(kv.Record{}, context.Cause(ctx))
		}
	}
}

// A watch is one call of Watch in progress.
type watch struct {
	*link
	name  string
	of    request
	yield func(kv.Record, error) bool
	shown bool      // something was yielded
	last  kv.Record // and this was the last
	more  bool
}

// listen yields what one stream carries, until a look shows that it misses
// something.
func (w *watch) listen(ctx context.Context) {
	st := &stream{l: w.link, of: w.of, latest: make(chan sight, 1)}
	w.send(w.of, func() answer {
		w.of.safe.watch(st)
		return answer{}
	}, make(chan answer, 2))
	defer w.of.safe.forget(st)
	every := w.w.TTL/2 + time.Duration(w.node.Index)
	look := time.NewTimer(every)
	defer look.Stop()
	for w.more {
		select {
		case <-ctx.Done():
			return
		case s := <-st.latest:
			w.node.StandStill()
			if s.broken {
				w.fail(errBroken)
				return
			}
			w.show(s.rec)
		case <-look.C:
			if w.look(ctx, every) {
				return
			}
		}
		look.Reset(every)
	}
}

// look asks for the present state, and reports whether it is news.
func (w *watch) look(ctx context.Context, patience time.Duration) (news bool) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rec, err := w.Get(bounded, w.name)
	if ctx.Err() != nil {
		return true
	}
	if err != nil && !errors.Is(err, kv.ErrVacant) {
		w.fail(err)
		return true
	}
	return w.show(rec)
}

// show yields a state that was not yielded last.
func (w *watch) show(rec kv.Record) (news bool) {
	if w.shown && rec == w.last {
		return false
	}
	w.shown, w.last = true, rec
	w.more = w.yield(state(rec))
	return true
}

func (w *watch) fail(err error) {
	w.more = false
	w.yield(kv.Record{}, fmt.Errorf("sim: watch: %w", err))
}
