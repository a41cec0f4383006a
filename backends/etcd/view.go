package etcdkv

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// A view is what a safe's line is known to be: by reads, and by a watch that is opened
// before the first of them.
type view struct {
	safe
	backstop time.Duration
	hint     func() // asks for a look

	// Of looks, which come one at a time.
	pause  time.Duration // after the next loss of the watch
	opened time.Time

	mu    sync.Mutex
	watch *watch            // nil if there is none
	why   error             // why it was lost
	show  func(kv.Record)   // nil until the line was read under this watch
	line  line              // as it was read, and as changes have made it
	early []*clientv3.Event // changes that came before it was read
}

// A watch is one watch by the client, which a goroutine reads.
type watch struct {
	stop context.CancelFunc
	done chan struct{}
}

// look reads the line, and opens a watch before that if none is open, or if it is so old
// that its connection may be dead. It returns when that will be so.
func (v *view) look(ctx context.Context, show func(kv.Record)) (next time.Duration, err error) {
	for {
		err := v.once(ctx, show)
		switch {
		case err == nil:
			v.pause = firstPause
			return jitter(v.backstop), nil
		case !lost(err):
			return 0, err
		}
		v.close()
		sleep(ctx, jitter(v.pause))
		v.pause = min(2*v.pause, lastPause)
	}
}

// once is a look that fails if the watch was lost.
func (v *view) once(ctx context.Context, show func(kv.Record)) error {
	if err := v.open(ctx); err != nil {
		return err
	}
	var now line
	err := answered(ctx, func(ctx context.Context) (err error) {
		now, err = v.read(ctx, v.all())
		return err
	})
	if err != nil {
		return err
	}
	v.mu.Lock()
	if v.show == nil || now.revision > v.line.revision {
		v.line = now
	}
	v.apply(v.early)
	v.early, v.show = nil, show
	if !v.plain {
		defer v.mu.Unlock()
		rec, _ := v.held(ctx, v.line) // no record if it is vacant
		show(rec)
		return nil
	}
	front := v.line.front()
	v.mu.Unlock()
	var rec kv.Record
	err = answered(ctx, func(ctx context.Context) (err error) {
		rec, err = v.held(ctx, front)
		return err
	})
	if err != nil && !definite(err) {
		return err
	}
	show(rec)
	return nil
}

// open sees to it that there is a watch.
func (v *view) open(ctx context.Context) error {
	v.mu.Lock()
	w, why := v.watch, v.why
	v.mu.Unlock()
	switch {
	case why != nil:
		return why
	case w != nil && time.Since(v.opened) < v.backstop*3/4:
		return nil
	}
	v.close()
	v.opened = time.Now()
	watching, stop := context.WithCancel(ctx)
	late := time.AfterFunc(answerTime, stop)
	// The client puts all watches whose contexts have the same gRPC metadata on one
	// stream, and waits until the server has confirmed.
	changes := v.client.Watch(clientv3.WithRequireLeader(watching), v.start, clientv3.WithRange(v.end))
	if !late.Stop() {
		stop()
		return fmt.Errorf("no answer in %v", answerTime)
	}
	w = &watch{stop: stop, done: make(chan struct{})}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watch, v.show = w, nil
	go func() {
		defer close(w.done)
		v.lose(w, v.follow(changes))
	}()
	return nil
}

// follow takes in changes until the watch is lost. The client keeps every change that
// nobody has taken from it.
func (v *view) follow(changes clientv3.WatchChan) error {
	for resp := range changes {
		if err := resp.Err(); err != nil {
			return err
		}
		v.take(resp.Events)
	}
	return errLost
}

// take takes changes in, and shows what is first in line if that is another record now.
func (v *view) take(changes []*clientv3.Event) {
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
		v.hint()
	default:
		rec, _ := v.held(context.Background(), v.line) // which asks nobody
		v.show(rec)
	}
}

// apply carries out the changes that are later than what was read.
func (v *view) apply(changes []*clientv3.Event) {
	seen := v.line.revision
	v.line.apply(slices.DeleteFunc(changes, func(e *clientv3.Event) bool { return e.Kv.ModRevision <= seen }))
}

// lose notes that a watch was lost, and asks for a look, which begins anew.
func (v *view) lose(w *watch, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.watch == w {
		v.why = why
		v.hint()
	}
}

// close ends the watch.
func (v *view) close() {
	v.mu.Lock()
	w := v.watch
	v.watch, v.why, v.early = nil, nil, nil
	v.mu.Unlock()
	if w != nil {
		w.stop()
		<-w.done
	}
}
