package rediskv

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The connection is pinged this often, and given up as deaf if nothing was
	// heard from it for a few pings.
	pingEvery = 5 * time.Second
	deafAfter = 3 * pingEvery

	// The pause before another connection is tried grows from one to the other.
	minReconnect = 100 * time.Millisecond
	maxReconnect = 10 * time.Second

	// manyChannels is how many one command subscribes to.
	manyChannels = 256
)

// listening is one stretch of time with somebody to hand hints to.
type listening struct {
	fresh   map[string]struct{} // keys that came or went since it was last tuned; guarded by the hub's mutex
	changed chan struct{}       // tells that there are some
	stop    context.CancelFunc
	done    chan struct{}
}

// listen starts to hand out hints.
func (h *hub) listen() *listening {
	ctx, stop := context.WithCancel(context.Background())
	l := &listening{fresh: make(map[string]struct{}), changed: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		h.keepListening(ctx, l)
	}()
	return l
}

// change notes that a key has come or gone. It is called with the hub's mutex held.
func (l *listening) change(key string) {
	l.fresh[key] = struct{}{}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// keepListening makes one connection after the other. A server that refuses
// keyspace events is not asked for them again; one that refuses everything is
// asked seldom.
func (h *hub) keepListening(ctx context.Context, l *listening) {
	withEvents, pause := true, minReconnect
	for ctx.Err() == nil {
		heard, err := h.connect(ctx, l, withEvents)
		if redis.HasErrorPrefix(err, "NOPERM") {
			withEvents = false
		}
		if pause = min(2*pause, maxReconnect); heard {
			pause = minReconnect
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// connect hands out hints from one connection until that fails or ctx ends. It
// reports whether a subscription stood.
func (h *hub) connect(ctx context.Context, l *listening, withEvents bool) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	sub := h.client.Subscribe(ctx)
	var tuner sync.WaitGroup
	tuner.Go(func() {
		defer sub.Close() // ends the reading below
		h.tune(ctx, sub, l, withEvents)
	})
	defer tuner.Wait()
	defer cancel()
	for {
		msg, err := sub.ReceiveTimeout(ctx, deafAfter)
		if err != nil {
			return heard, err
		}
		switch msg := msg.(type) {
		case *redis.Subscription:
			heard = true
			if msg.Kind == "subscribe" { // now, or anew: something may have been missed
				h.hand(msg.Channel, "")
			}
		case *redis.Message:
			if !h.isRefresh(msg) {
				h.hand(msg.Channel, msg.Payload)
			}
		}
	}
}

// isRefresh tells the events apart that a leader causes all the time.
func (h *hub) isRefresh(msg *redis.Message) bool {
	return msg.Payload == "expire" && strings.HasPrefix(msg.Channel, h.events)
}

// tune keeps the subscriptions of one connection as the watches want them, and
// the connection busy enough to be found deaf. It ends with ctx, or when it
// cannot write.
func (h *hub) tune(ctx context.Context, sub *redis.PubSub, l *listening, withEvents bool) {
	prefixes := []string{hintPrefix}
	if withEvents {
		prefixes = append(prefixes, h.events)
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var tuned map[string]struct{}
	for {
		var add, drop []string
		if tuned == nil {
			tuned, add = h.all(l)
		} else {
			add, drop = h.changes(l, tuned)
		}
		for _, prefix := range prefixes { // each by itself: one may be refused
			if each(ctx, add, prefix, sub.Subscribe) != nil || each(ctx, drop, prefix, sub.Unsubscribe) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		case <-ping.C:
			if sub.Ping(ctx) != nil {
				return
			}
		}
	}
}

// all returns the keys that are watched.
func (h *hub) all(l *listening) (tuned map[string]struct{}, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(l.fresh)
	tuned = make(map[string]struct{}, len(h.ears))
	for key := range h.ears {
		tuned[key] = struct{}{}
		keys = append(keys, key)
	}
	return tuned, keys
}

// changes makes tuned, which was that earlier, the set of keys that are watched, and returns what
// has changed.
func (h *hub) changes(l *listening, tuned map[string]struct{}) (add, drop []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range l.fresh {
		_, was := tuned[key]
		switch is := h.ears[key] != nil; {
		case is && !was:
			tuned[key] = struct{}{}
			add = append(add, key)
		case was && !is:
			delete(tuned, key)
			drop = append(drop, key)
		}
	}
	clear(l.fresh)
	return add, drop
}

// each sends commands for the channels of all the keys, if there are any. A server carries a command
// out at one go, so none has many.
func each(ctx context.Context, keys []string, prefix string, send func(context.Context, ...string) error) error {
	for some := range slices.Chunk(keys, manyChannels) {
		channels := make([]string, len(some))
		for i, key := range some {
			channels[i] = prefix + key
		}
		if err := send(ctx, channels...); err != nil {
			return err
		}
	}
	return nil
}
