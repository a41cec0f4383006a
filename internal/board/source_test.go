package board_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

const (
	rest = 10 * time.Millisecond
	next = time.Minute
)

// A world holds safes, and is the source of a board that shows them.
type world struct {
	*board.Board

	mu     sync.Mutex
	safes  map[string]kv.Record
	topics map[string]*board.Topic
	shows  map[string]func(kv.Record) // what the last look at a safe was given
	looks  map[string][]time.Duration // when they began
	next   time.Duration              // between two looks
	err    error                      // of looks
	during func(context.Context)
	events []string

	start time.Time
}

// bubble runs a test in fake time, with a board of a new world.
func bubble(t *testing.T, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{safes: map[string]kv.Record{}, topics: map[string]*board.Topic{}, shows: map[string]func(kv.Record){},
			looks: map[string][]time.Duration{}, next: next, start: time.Now()}
		w.Board = board.New(rest, w.source)
		test(t, w)
	})
}

func (w *world) source(name string, t *board.Topic) (board.Look, func(), error) {
	if name == "" {
		return nil, nil, kv.ErrInvalid
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.topics[name] = t
	w.events = append(w.events, "begin "+name)
	look := func(ctx context.Context, show func(kv.Record)) (time.Duration, error) { return w.look(ctx, name, show) }
	return look, func() { w.happened("end " + name) }, nil
}

func (w *world) look(ctx context.Context, name string, show func(kv.Record)) (time.Duration, error) {
	w.mu.Lock()
	w.shows[name] = show
	w.looks[name] = append(w.looks[name], time.Since(w.start))
	rec, pause, err, during := w.safes[name], w.next, w.err, w.during
	w.mu.Unlock()
	if during != nil {
		during(ctx)
		w.happened("looked at " + name)
	}
	if err == nil {
		show(rec)
	}
	return pause, err
}

func (w *world) happened(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, what)
}

// put changes a safe, and tells nobody.
func (w *world) put(name string, rec kv.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.safes[name] = rec
}

// change changes a safe, and tells its topic.
func (w *world) change(name string, rec kv.Record) {
	w.put(name, rec)
	w.topic(name).Hint()
}

// topic returns the topic that was begun last.
func (w *world) topic(name string) *board.Topic {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.topics[name]
}

// push shows a state outside of a look.
func (w *world) push(name string, rec kv.Record) {
	w.mu.Lock()
	show := w.shows[name]
	w.mu.Unlock()
	show(rec)
}

// looked returns when the looks at a safe have begun.
func (w *world) looked(name string) []time.Duration {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.looks[name])
}

// saw returns what has begun and ended.
func (w *world) saw() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// fail has looks end with an error; nil is none.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// pause has looks ask for the next after d.
func (w *world) pause(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = d
}

// meanwhile has something done in each look, when the safe has been read.
func (w *world) meanwhile(do func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.during = do
}

// wait lets a rest pass, and all that happens in it.
func wait() {
	time.Sleep(2 * rest)
	synctest.Wait()
}

// nth returns the nth record of a safe; the zeroth is none.
func nth(n uint64) kv.Record {
	if n == 0 {
		return kv.Record{}
	}
	return kv.Record{Signature: "s", Token: n, Revision: n}
}

// A told is what one call said.
type told struct {
	rec kv.Record
	err error
}

var vacant = told{err: kv.ErrVacant}

func holding(n uint64) told { return told{rec: nth(n)} }

// A listener collects what it is told.
type listener struct {
	stop func()

	mu   sync.Mutex
	said []told
}

// listen follows a safe until the test ends.
func (w *world) listen(t *testing.T, name string) *listener {
	l := &listener{}
	l.stop = w.Follow(name, l.tell)
	t.Cleanup(l.stop)
	return l
}

func (l *listener) tell(rec kv.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, told{rec, err})
}

// heard returns what the listener was told since it was asked last.
func (l *listener) heard() []told {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}
