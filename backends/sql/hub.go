package sqlkv

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/board"
)

const (
	// parting is how long the end of listening is waited for.
	parting = time.Second

	// lull is how long the hub waits, or up to twice that, before it connects
	// again.
	lull = time.Second
)

// A hub hands the hints of PostgreSQL's NOTIFY to those who follow safes of one store. They
// share one connection beside the pool, so that a pool of one is not taken up by
// it; it lasts as long as anybody watches. Hints may be lost, doubled or false:
// they only say that it may be worth to look.
type hub struct {
	driver  Driver
	db      *sql.DB
	channel string

	mu   sync.Mutex
	ears map[string]map[*board.Topic]struct{} // by name
	now  *listening                           // nil while nobody watches
}

// listening is what a hub does while anybody watches.
type listening struct {
	stop context.CancelFunc
	done chan struct{}
	on   atomic.Bool // the server tells of changes
}

func newHub(driver Driver, db *sql.DB, channel string) *hub {
	return &hub{driver: driver, db: db, channel: channel, ears: make(map[string]map[*board.Topic]struct{})}
}

// join has a topic hinted at when it may be worth to look at the safe, and also when
// hints begin or cease to come. The caller calls leave in the end.
func (h *hub) join(name string, t *board.Topic) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.now = &listening{stop: stop, done: make(chan struct{})}
		go h.listen(ctx, h.now)
	}
	if h.ears[name] == nil {
		h.ears[name] = make(map[*board.Topic]struct{})
	}
	h.ears[name][t] = struct{}{}
	return func() { h.leave(name, t) }
}

// leave takes a topic away, and after the last one waits for the connection to be
// given up.
func (h *hub) leave(name string, t *board.Topic) {
	h.mu.Lock()
	delete(h.ears[name], t)
	if len(h.ears[name]) == 0 {
		delete(h.ears, name)
	}
	now := h.now
	last := len(h.ears) == 0
	if last {
		h.now = nil
	}
	h.mu.Unlock()
	if !last {
		return
	}
	now.stop()
	timer := time.NewTimer(2 * parting)
	defer timer.Stop()
	select {
	case <-now.done:
	case <-timer.C:
	}
}

// listens reports whether changes are told at this time.
func (h *hub) listens() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now != nil && h.now.on.Load()
}

// hand hints at a safe.
func (h *hub) hand(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.ears[name] {
		t.Hint()
	}
}

// handAll hints at all safes, since something may have been missed.
func (h *hub) handAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ears := range h.ears {
		for t := range ears {
			t.Hint()
		}
	}
}

// listen keeps a connection that listens, until ctx ends or there is nothing to
// listen to. What goes wrong with it is no news: the watches look by themselves,
// and their looks tell what is wrong with the server.
func (h *hub) listen(ctx context.Context, now *listening) {
	defer close(now.done)
	for {
		err := h.session(ctx, now)
		if ctx.Err() != nil || errors.Is(err, ErrUnheard) {
			return
		}
		timer := time.NewTimer(lull + rand.N(lull))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// session listens on one connection until that ends.
func (h *hub) session(ctx context.Context, now *listening) error {
	defer func() {
		if now.on.Swap(false) {
			h.handAll()
		}
	}()
	return h.driver.Listen(ctx, h.db, h.channel, func() {
		now.on.Store(true)
		h.handAll() // what happened before is looked up
	}, h.hand)
}
