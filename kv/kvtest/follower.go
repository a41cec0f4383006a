package kvtest

import (
	"sync"
	"sync/atomic"

	"github.com/electkv/election/kv"
)

// A follower reads what a follow tells, as a watcher does.
type follower struct {
	*watcher
	stop func() // the store's

	busy    atomic.Int32 // calls under way
	jostled atomic.Bool  // one has begun while another was under way
	stopped atomic.Bool  // a stop has returned
	late    atomic.Bool  // a call has begun or ended since then
}

// follow is a view through a follow.
func (t *trial) follow(s kv.Store, name string) *watcher {
	return t.follower(s, name, func() {}).watcher
}

// follower starts a follower, and stops it when the case is over. Each call lasts as long
// as meanwhile does. What it is told beyond the room that seen has, makes the calls wait
// until it is to end.
func (t *trial) follower(s kv.Store, name string, meanwhile func()) *follower {
	f := &follower{watcher: &watcher{t: t, name: name, seen: make(chan sighting, 256), done: make(chan struct{})}}
	ending := make(chan struct{})
	f.stop = s.(kv.Board).Follow(name, func(rec kv.Record, err error) {
		f.note(f.busy.Add(1) > 1)
		select {
		case f.seen <- sighting{rec, err}:
		case <-ending:
		}
		meanwhile()
		f.note(f.busy.Add(-1) > 0)
	})
	f.cancel = sync.OnceFunc(func() {
		close(ending)
		go func() {
			defer close(f.done)
			f.stop()
			f.stopped.Store(true)
		}()
	})
	t.Cleanup(f.end)
	return f
}

// note notes that a call begins or ends.
func (f *follower) note(jostled bool) {
	if jostled {
		f.jostled.Store(true)
	}
	if f.stopped.Load() {
		f.late.Store(true)
	}
}
