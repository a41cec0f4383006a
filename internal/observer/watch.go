package observer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/electkv/election/kv"
)

// least is the shortest time for which a watch waits before it reads the clock
// again.
const least = time.Millisecond

// A news is the last state that the register's watch has shown.
type news struct {
	rec kv.Record
	err error
}

// Watch implements [kv.Store]. If a record was not changed for its TTL, Watch reads it
// once more before it judges, so that an observer that was only cut off does not report a
// vacancy. If a record that was judged dead turns out to live, it is yielded
// again.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if err := checkName(name); err != nil {
			yield(kv.Record{}, err)
			return
		}
		s.memory.watch(name)
		defer s.memory.unwatch(name)
		latest, stop := s.listen(ctx, name)
		defer stop()
		w := watch{s: s, name: name, yield: yield, timer: time.NewTimer(0)}
		w.timer.Stop()
		defer w.timer.Stop()
		for w.more = true; w.more; {
			select {
			case <-ctx.Done():
				yield(kv.Record{}, context.Cause(ctx))
				return
			case n := <-latest:
				w.hear(n)
			case <-w.timer.C:
				w.judge(ctx)
			}
		}
	}
}

// listen reads the register's watch until stop is called, which waits for it to end.
// The channel holds the latest news that was not received yet. News counts as seen when it
// arrives, however slow the reader is.
func (s *Store) listen(ctx context.Context, name string) (latest <-chan news, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch, done := make(chan news, 1), make(chan struct{})
	go func() {
		defer close(done)
		last := news{err: errors.New("the watch ended by itself")}
		tell := func(n news) {
			select {
			case <-ch: // out of date
			default:
			}
			ch <- n
		}
		for rec, err := range s.reg.Watch(ctx, name) {
			switch {
			case err == nil:
				s.memory.saw(name, rec)
			case errors.Is(err, kv.ErrVacant):
				s.memory.vacant(name)
			default:
				last.err = err
				continue
			}
			tell(news{rec, err})
		}
		tell(last)
	}()
	return ch, func() {
		cancel()
		<-done
	}
}

// A watch is one call of Watch in progress.
type watch struct {
	s     *Store
	name  string
	yield func(kv.Record, error) bool
	more  bool

	cell  kv.Record   // as the register was said to hold it; zero if it is empty
	timer *time.Timer // when to judge that
	told  bool        // something was yielded
	last  kv.Record   // and this was the last; zero for a vacant safe

	behind bool // a read has found a state that the register's watch has not shown
}

// hear takes in what the register has told.
func (w *watch) hear(n news) {
	w.timer.Stop()
	w.behind = false
	switch {
	case errors.Is(n.err, kv.ErrVacant):
		w.cell = kv.Record{}
		w.tell(kv.Record{})
		return
	case n.err != nil:
		w.fail(n.err)
		return
	}
	w.cell = n.rec
	left := w.s.memory.left(w.name, n.rec)
	if left <= 0 {
		w.tell(kv.Record{})
		return
	}
	w.tell(opened(n.rec))
	w.wait(left)
}

// judge checks whether the record's time is over. If the read finds anything else, the
// register's watch, which never goes back, will show that; it gets another TTL
// for it.
func (w *watch) judge(ctx context.Context) {
	if left := w.s.memory.left(w.name, w.cell); left > 0 && !w.behind {
		w.wait(left)
		return
	}
	patience, cancel := context.WithTimeout(ctx, w.cell.TTL)
	defer cancel()
	cell, dead, err := w.s.look(patience, w.name)
	other := errors.Is(err, kv.ErrVacant) || err == nil && cell.Revision != w.cell.Revision
	switch {
	case ctx.Err() != nil:
	case other && w.behind:
		w.fail(fmt.Errorf("the watch of %q does not tell of what is there", w.name))
	case other:
		w.behind = true
		w.wait(w.cell.TTL)
	case err != nil:
		w.fail(fmt.Errorf("cannot tell whether the record in %q lives: %w", w.name, err))
	case dead:
		w.tell(kv.Record{})
	default:
		w.behind = false
		w.wait(w.s.memory.left(w.name, cell))
	}
}

func (w *watch) wait(left time.Duration) {
	if left < never {
		w.timer.Reset(max(w.s.span(left), least))
	}
}

// tell yields a state that was not yielded last.
func (w *watch) tell(rec kv.Record) {
	if w.told && rec == w.last {
		return
	}
	w.told, w.last = true, rec
	if rec == (kv.Record{}) {
		w.more = w.yield(rec, kv.ErrVacant)
		return
	}
	w.more = w.yield(rec, nil)
}

func (w *watch) fail(err error) {
	w.more = false
	w.yield(kv.Record{}, err)
}
