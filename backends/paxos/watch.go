package paxoskv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/kv"
)

// Watch implements [kv.Store]. The member that changes a safe tells all members. A watch
// also looks when it begins, when a record should have expired, and now and then.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if err := checkName(name); err != nil {
			yield(kv.Record{}, err)
			return
		}
		sc := s.scenes.enter(name)
		defer s.scenes.leave(name, sc)
		w := watcher{s: s, name: name, scene: sc}
		for {
			if err := w.look(ctx); err != nil {
				yield(kv.Record{}, err)
				return
			}
			goOn, err := w.follow(ctx, yield)
			if err != nil {
				yield(kv.Record{}, err)
			}
			if !goOn {
				return
			}
		}
	}
}

// A watcher is one watch.
type watcher struct {
	s       *Store
	name    string
	scene   *scene
	yielded bool
	last    kv.Record
}

// errSilent ends a watch that no majority answers.
var errSilent = errors.New("five rounds have passed")

// look brings the scene up to date. It gives up after a few rounds, so that whoever
// watches hears of it.
func (w *watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*w.s.terms.Round, errSilent)
	defer cancel()
	_, err := w.s.look(ctx, w.name)
	return err
}

// follow yields what the scene shows until it is time to look again.
func (w *watcher) follow(ctx context.Context, yield func(kv.Record, error) bool) (goOn bool, _ error) {
	backstop := time.NewTimer(w.s.backstop - time.Duration(rand.Int64N(int64(w.s.backstop/4)+1)))
	defer backstop.Stop()
	expiry := time.NewTimer(0)
	defer expiry.Stop()
	for {
		sight, ends, changed := w.scene.look()
		rec, state := reported(sight)
		if !w.yielded || rec != w.last {
			w.yielded, w.last = true, rec
			if !yield(rec, state) {
				return false, nil
			}
		}
		expiry.Stop()
		if sight.Live {
			expiry.Reset(max(time.Until(ends), 0) + time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-w.s.closed:
			return false, fmt.Errorf("paxoskv: %q: %w", short(w.name), errClosed)
		case <-changed:
		case <-expiry.C:
			return true, nil
		case <-backstop.C:
			return true, nil
		}
	}
}

// scenes are the safes that are watched here.
type scenes struct {
	mu sync.Mutex
	on map[string]*scene
}

// A scene is the newest that is known of a safe.
type scene struct {
	watchers int // guarded by the scenes' mu

	mu      sync.Mutex
	sight   lease.Sight
	ends    time.Time
	shown   time.Time     // when the sight was
	changed chan struct{} // closed at the next change
}

func (s *scenes) enter(name string) *scene {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.on[name]
	if sc == nil {
		sc = &scene{changed: make(chan struct{})}
		s.on[name] = sc
	}
	sc.watchers++
	return sc
}

func (s *scenes) leave(name string, sc *scene) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc.watchers--; sc.watchers == 0 {
		delete(s.on, name)
	}
}

// tell shows those who watch a safe what somebody says that a majority holds.
func (s *scenes) tell(name string, sight lease.Sight) {
	if sc := s.at(name); sc != nil {
		sc.show(sight, time.Time{})
	}
}

// show shows them how an operation ended that has begun at an instant.
func (s *scenes) show(name string, res lease.Result, began time.Time) {
	if res.Verdict == lease.Unclear {
		began = time.Time{}
	}
	if sc := s.at(name); sc != nil {
		sc.show(res.Sight, began)
	}
}

func (s *scenes) at(name string) *scene {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[name]
}

// show keeps a sight unless a newer one is known. What is decided is decided in the
// order of the ballots, and a record that has expired does not come back. But news may be
// false: the answer of a majority to an operation that began after them corrects them.
func (sc *scene) show(sight lease.Sight, began time.Time) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	last, now := sc.sight, time.Now()
	same := sight.Ballot.Counter == last.Ballot.Counter
	ends := now.Add(sight.Life)
	switch {
	case sc.shown.Before(began):
		// Whatever is shown, this is newer.
	case sight.Ballot == (lease.Ballot{}) && last.Live && now.After(sc.ends):
		// The members have forgotten what was here, as they do when it is long over.
	case sight.Ballot.Counter < last.Ballot.Counter, same && sight.Live && !last.Live, same && sight.Live == last.Live && !ends.After(sc.ends):
		return
	}
	sc.sight, sc.ends, sc.shown = sight, ends, now
	close(sc.changed)
	sc.changed = make(chan struct{})
}

func (sc *scene) look() (lease.Sight, time.Time, <-chan struct{}) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.sight, sc.ends, sc.changed
}
