package electionhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// ready answers 200 if the store has answered within a TTL.
func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	err := h.reach(r.Context())
	s := h.candidate.Status()
	switch {
	case err != nil:
		refuse(w, r, http.StatusServiceUnavailable, err)
	default:
		h.tell(w, r, s.Role == election.RoleLeader || !r.URL.Query().Has("leader"), s)
	}
}

// A contact is what the handler itself has heard from the store.
type contact struct {
	mu     sync.Mutex
	asked  boottime.Instant // when it last asked
	heard  boottime.Instant // when the store last answered
	asking chan struct{}    // closed when the store has answered, or not; nil if it is not asked
	err    error            // why it has not
}

// reach returns nil if the store has answered within a TTL. It asks the store if the last
// answer is older than half of that, once in a third of a TTL, and waits only if it does not know.
func (h *Handler) reach(ctx context.Context) error {
	ttl := h.candidate.TTL()
	if h.heardWithin(ttl / 2) {
		return nil
	}
	asking := h.ask(ttl / 3)
	if h.heardWithin(ttl) {
		return nil
	}
	if asking != nil {
		select {
		case <-asking:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if h.heardWithin(ttl) {
		return nil
	}
	return h.silence()
}

// heardWithin reports whether the store has answered the candidate, or the handler, in the last
// so long. A contact of the candidate that lies ahead of the wall clock tells nothing: the clock
// was set.
func (h *Handler) heardWithin(d time.Duration) bool {
	if age := time.Now().UnixMilli() - h.candidate.Status().Contact.UnixMilli(); 0 <= age && age <= d.Milliseconds() {
		return true
	}
	c := &h.contact
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard != boottime.Instant{} && instant().Since(c.heard) <= d
}

// silence returns why the store has not been heard.
func (h *Handler) silence() error {
	h.contact.mu.Lock()
	defer h.contact.mu.Unlock()
	err := fmt.Errorf("the store has not answered within %v", h.candidate.TTL())
	if h.contact.err != nil {
		err = fmt.Errorf("%w: %w", err, h.contact.err)
	}
	return err
}

// ask has the store asked, unless it was within so long. It returns a channel that is closed
// when an answer that is awaited has come, or will not; nil if none is.
func (h *Handler) ask(pause time.Duration) <-chan struct{} {
	c := &h.contact
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking != nil {
		return c.asking
	}
	now := instant()
	if c.asked != (boottime.Instant{}) && now.Since(c.asked) < pause {
		return nil
	}
	done := make(chan struct{})
	if h.start(func() { h.probe(done) }) {
		c.asked, c.asking = now, done
	}
	return c.asking
}

// probe asks the store once.
func (h *Handler) probe(done chan struct{}) {
	ctx, cancel := h.bounded()
	defer cancel()
	_, err := h.store.Get(ctx, h.candidate.Name())
	if errors.Is(err, kv.ErrVacant) {
		err = nil
	}
	h.heard(err)
	h.contact.mu.Lock()
	defer h.contact.mu.Unlock()
	h.contact.asking = nil
	close(done)
}

// heard notes the outcome of a read.
func (h *Handler) heard(err error) {
	c := &h.contact
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; err == nil {
		c.heard = instant()
	}
}

// instant returns the present instant. If the kernel refuses its boot clock, the other decides.
func instant() boottime.Instant {
	boot, _ := boottime.Clock()
	return boottime.Instant{Mono: time.Now(), Boot: boot}
}
