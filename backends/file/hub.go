package filekv

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// tick is how often the hub looks at the clock and at life files.
	tick = 50 * time.Millisecond
	// backstop is how often a watch looks without any reason.
	backstop = 30 * time.Second
	// blind is how often it looks if file events are not to be had.
	blind = 250 * time.Millisecond
)

// A hub wakes the watches of a store. It runs as long as there are any.
type hub struct {
	s      *Store
	events *fsnotify.Watcher // nil if there is none to be had
	stop   chan struct{}
	done   chan struct{}

	mu   sync.Mutex
	ears map[*ear]struct{}

	// doors guards what is watched. The watcher may wait for run while it is
	// asked for something, so run never takes this lock, and nobody asks the
	// watcher for anything with mu held.
	doors sync.Mutex
}

// An ear is one watch's side of the hub.
type ear struct {
	hub *hub
	f   folder
	// woken has room for one wake-up: those that come in between are the same.
	woken chan struct{}

	// The following is guarded by hub.mu.

	due   time.Duration // on sinceBoot
	life  string        // of the record last seen, if there is one
	pulse pulse         // of life when it was seen
}

// listen returns a new ear at the folder f, and starts the hub for the first.
func (s *Store) listen(f folder) *ear {
	s.hubMu.Lock()
	defer s.hubMu.Unlock()
	if s.watches == 0 {
		s.hub = s.startHub()
	}
	s.watches++
	e := &ear{hub: s.hub, f: f, woken: make(chan struct{}, 1), due: 1<<63 - 1}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.ears[e] = struct{}{}
	return e
}

// leave ends the ear, and with the last one the hub.
func (s *Store) leave(e *ear) {
	s.hubMu.Lock()
	defer s.hubMu.Unlock()
	e.hub.forget(e)
	s.watches--
	if s.watches > 0 {
		return
	}
	close(e.hub.stop)
	<-e.hub.done
	if e.hub.events != nil {
		_ = e.hub.events.Close() // of no interest to a reader that is content
	}
	s.hub = nil
}

// startHub starts a hub. Without file events (each user has few inotify
// instances) it runs all the same, and its ears are blind.
func (s *Store) startHub() *hub {
	h := &hub{s: s, stop: make(chan struct{}), done: make(chan struct{}), ears: make(map[*ear]struct{})}
	events, err := fsnotify.NewWatcher()
	if err == nil {
		h.events = events
	}
	go h.run()
	return h
}

func (h *hub) run() {
	defer close(h.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var events chan fsnotify.Event
	var failures chan error
	if h.events != nil {
		events, failures = h.events.Events, h.events.Errors
	}
	for {
		select {
		case <-h.stop:
			return
		case ev := <-events:
			h.wake(ev.Name)
		case <-failures: // such as an overflow: events were lost
			h.wake(h.s.safes())
		case <-ticker.C:
			h.tick()
		}
	}
}

// wake wakes the ears at a folder in which path has changed, or all if path is
// the folder of folders.
func (h *hub) wake(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.ears {
		if path == h.s.safes() || path == e.f.path || filepath.Dir(path) == e.f.path {
			e.wake()
		}
	}
}

// tick wakes the ears whose time has come, or whose record's process has died.
func (h *hub) tick() {
	now, err := sinceBoot()
	h.mu.Lock()
	defer h.mu.Unlock()
	pulses := make(map[string]pulse)
	for e := range h.ears {
		if err != nil || now >= e.due || h.changed(e, pulses) {
			e.wake()
		}
	}
}

// changed reports whether the life file that e waits for shows another pulse. It
// feels each one once a tick, and notes it in pulses.
func (h *hub) changed(e *ear, pulses map[string]pulse) bool {
	if e.life == "" {
		return false
	}
	p, felt := pulses[e.life]
	if !felt {
		var err error
		if p, err = h.s.feel(e.life); err != nil {
			return true // the look will tell
		}
		pulses[e.life] = p
	}
	return p != e.pulse
}

// forget takes e out of the hub.
func (h *hub) forget(e *ear) {
	h.doors.Lock()
	defer h.doors.Unlock()
	if h.remove(e) && h.events != nil {
		_ = h.events.Remove(e.f.path) // it may be gone, and its watch with it
	}
}

// remove reports whether no other ear is at the folder of e.
func (h *hub) remove(e *ear) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ears, e)
	for other := range h.ears {
		if other.f.path == e.f.path {
			return false
		}
	}
	return true
}

// wake is called with hub.mu held.
func (e *ear) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// open sees to it that from now on changes wake the ear, and reports whether it
// could. A folder that is not there yet announces itself in the folder above.
func (e *ear) open() bool {
	events := e.hub.events
	e.hub.doors.Lock()
	defer e.hub.doors.Unlock()
	if events == nil || events.Add(e.hub.s.safes()) != nil {
		return false
	}
	err := events.Add(e.f.path)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// expect sets what wakes the ear besides events: the end of the record in c, and
// the next look in any case.
func (e *ear) expect(c state, sighted bool) error {
	now, err := sinceBoot()
	if err != nil {
		return err
	}
	next := now + blind
	if sighted {
		next = now + backstop
	}
	if c.deadline != 0 {
		next = min(next, c.deadline)
	}
	if c.alien && c.ttl != 0 {
		next = min(next, now+c.left)
	}
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.due, e.life, e.pulse = next, c.page.Life, c.pulse
	return nil
}
