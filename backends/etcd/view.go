package etcdkv

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A view is what a safe's line is known to be: by reads, and by a watch that is opened
// before the first of them.
type view struct {
	safe
	hub      *hub
	backstop time.Duration
	board    *board.Board
	topic    *board.Topic

	// Of looks, which come one at a time.
	pause time.Duration // after the next loss of the watch
	watch watch         // nil if there is none
	since time.Time     // when that was opened

	mu    sync.Mutex
	why   error           // why the watch was lost
	show  func(kv.Record) // nil until the line was read under this watch
	line  line            // as it was read, and as changes have made it
	early []*mvccpb.Event // changes that came before it was read
}

// look reads the line, and opens a watch before that if none is open, or if its connection
// may be dead. It returns when that will be so.
func (v *view) look(ctx context.Context, show func(kv.Record)) (next time.Duration, err error) {
	if v.lostAfter(lastPause) { // else it may be lost again at once
		v.close()
	}
	for begun := time.Now(); ; {
		rec, err := v.once(ctx, show)
		switch {
		case err == nil:
			v.pause = firstPause
			return jitter(v.backstop) + rand.N(v.board.Backstop(v.backstop, rec)-v.backstop+1), nil
		case !lost(err) || time.Since(begun) >= answerTime:
			return 0, err
		}
		v.close()
		sleep(ctx, jitter(v.pause))
		v.pause = min(2*v.pause, lastPause)
	}
}

// once is a look that fails if the watch was lost. It returns what it has shown.
func (v *view) once(ctx context.Context, show func(kv.Record)) (rec kv.Record, err error) {
	if err := v.open(ctx); err != nil {
		return rec, err
	}
	var now line
	err = answered(ctx, func(ctx context.Context) (err error) {
		now, err = v.read(ctx, v.all())
		return err
	})
	if err != nil {
		return rec, err
	}
	v.mu.Lock()
	if v.show == nil || now.revision > v.line.revision {
		v.line = now
	}
	v.apply(v.early)
	v.early, v.show = nil, show
	if !v.plain {
		defer v.mu.Unlock()
		rec, _ = v.held(ctx, v.line) // no record if it is vacant
		show(rec)
		return rec, nil
	}
	front := v.line.front()
	v.mu.Unlock()
	err = answered(ctx, func(ctx context.Context) (err error) {
		rec, err = v.held(ctx, front)
		return err
	})
	if err != nil && !definite(err) {
		return rec, err
	}
	show(rec)
	return rec, nil
}

// open sees to it that there is a watch. Where nothing was heard for long, it opens a new
// one, whose confirmation proves that the connection lives.
func (v *view) open(ctx context.Context) error {
	v.mu.Lock()
	why := v.why
	v.mu.Unlock()
	switch {
	case why != nil:
		return why
	case v.watch != nil && time.Since(v.watch.heard()) < v.backstop*3/4:
		return nil
	}
	v.close()
	w, err := v.hub.open(ctx, v.client, span{v.start, v.end}, v)
	if err != nil {
		return err
	}
	v.watch, v.since = w, time.Now()
	return nil
}

// lostAfter reports whether the watch was lost, after it had stood for so long.
func (v *view) lostAfter(stood time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.why != nil && time.Since(v.since) > stood
}

// take implements listener: it takes changes in, and shows what is first in line if that
// is another record now.
func (v *view) take(changes []*mvccpb.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.show == nil {
		v.early = append(v.early, changes...)
		return
	}
	before := v.line.head()
	v.apply(changes)
	switch {
	case v.line.head() == before:
	case v.plain: // its record has to be read
		v.topic.Hint()
	default:
		rec, _ := v.held(context.Background(), v.line) // which asks nobody
		v.show(rec)
	}
}

// apply carries out the changes that are later than what was read.
func (v *view) apply(changes []*mvccpb.Event) {
	seen := v.line.revision
	v.line.apply(slices.DeleteFunc(changes, func(e *mvccpb.Event) bool { return e.Kv.ModRevision <= seen }))
}

// lose implements listener: it asks for a look, which begins anew.
func (v *view) lose(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.why = why
	v.topic.Hint()
}

// close ends the watch.
func (v *view) close() {
	if v.watch != nil {
		v.watch.close()
		v.watch = nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.why, v.show, v.early = nil, nil, nil
}
