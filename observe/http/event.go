package electionhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
)

// The kinds of events, in the order in which a new client is told the present state.
const (
	eventLeader  = "leader"  // who leads, as elect watch -o json has it
	eventHeir    = "heir"    // who is next, if anybody
	eventRole    = "role"    // what this process is
	eventTrouble = "trouble" // why it cannot be seen who leads
)

// backlog is how many events may wait for a client. One that lets more wait is dropped.
const backlog = 16

// An event is one server-sent event, as it is written.
type event struct {
	kind string
	text []byte
}

// newEvent returns an event about a term; the token is zero if it is about none.
func newEvent(kind string, token uint64, data any) event {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", kind)
	if token != 0 {
		fmt.Fprintf(&b, "id: %d\n", token)
	}
	b.WriteString("data: ")
	_ = encode(&b, data) // a line, into memory
	b.WriteByte('\n')
	return event{kind, b.Bytes()}
}

// A feed tells all clients of /events what changes. It looks for changes while it has any.
type feed struct {
	mu      sync.Mutex
	clients map[chan event]struct{}
	latest  map[string]event // of each kind, for clients that come
	stop    context.CancelFunc
}

var errCrowded = errors.New("too many clients follow the events: try again later")

// follow returns a channel of events, which begins with the present state as far as it is known.
// It is closed if the client is too slow. Leave must be called.
func (h *Handler) follow() (events chan event, leave func(), _ error) {
	f := &h.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clients) >= h.options.Streams {
		return nil, nil, errCrowded
	}
	if len(f.clients) == 0 && !h.look() {
		return nil, nil, errClosed
	}
	events = make(chan event, backlog)
	f.clients[events] = struct{}{}
	for _, kind := range []string{eventLeader, eventHeir, eventRole, eventTrouble} {
		if e, ok := f.latest[kind]; ok {
			events <- e
		}
	}
	return events, func() { f.leave(events) }, nil
}

// leave forgets a client. With the last one, the feed ends.
func (f *feed) leave(events chan event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(events)
}

// drop ends a client's events.
func (f *feed) drop(events chan event) {
	if _, ok := f.clients[events]; !ok {
		return
	}
	delete(f.clients, events)
	close(events)
	if len(f.clients) == 0 {
		f.stop()
	}
}

// look begins to look for changes. It reports false if the handler is closed.
func (h *Handler) look() bool {
	ctx, cancel := context.WithCancel(h.ctx)
	f := &h.feed
	f.clients, f.latest, f.stop = make(map[chan event]struct{}), make(map[string]event), cancel
	tell := func(e event) { f.tell(ctx, e) }
	for _, look := range []func(context.Context, func(event)){h.lookAtLeader, h.lookAtHeir, h.lookAtSelf} {
		if !h.start(func() { look(ctx, tell) }) {
			cancel()
			return false
		}
	}
	return true
}

// tell tells all clients of an event, unless it is of a feed that has ended.
func (f *feed) tell(ctx context.Context, e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.latest[e.kind] = e
	if e.kind == eventLeader {
		delete(f.latest, eventTrouble)
	}
	for events := range f.clients {
		select {
		case events <- e:
		default:
			f.drop(events)
		}
	}
}

// lookAtLeader tells who leads, and of trouble with the store.
func (h *Handler) lookAtLeader(ctx context.Context, tell func(event)) {
	name := h.candidate.Name()
	for leader, err := range election.Watch(ctx, h.store, name) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, election.ErrNoLeader):
			tell(newEvent(eventTrouble, 0, failure{err.Error()}))
		default:
			h.heard(nil)
			tell(newEvent(eventLeader, leader.Token, snapshot.Of(name, leader, err)))
		}
	}
}

// glance is how often it is looked at most whether this process is something else than before.
const glance = 100 * time.Millisecond

// lookAtSelf tells what this process is. It asks for the state of this moment, so that the end of
// a term is told by the clock.
func (h *Handler) lookAtSelf(ctx context.Context, tell func(event)) {
	var last election.Status
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s := h.candidate.Status()
		if s.Role != last.Role || s.Token != last.Token {
			tell(newEvent(eventRole, s.Token, h.self(s)))
		}
		last = s
		next := min(glance, h.candidate.TTL()/10)
		if s.Role == election.RoleLeader {
			next = min(next, s.Remaining)
		}
		timer.Reset(next)
	}
}
