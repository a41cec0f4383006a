package rediskv

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// The connection is pinged this often, and given up as deaf if nothing was
	// heard from it for a few pings.
	pingEvery = 10 * time.Second
	deafAfter = 3 * pingEvery

	// The pause before another connection is tried grows from one to the other.
	minReconnect = 100 * time.Millisecond
	maxReconnect = 10 * time.Second

	// parting is how long the last watch waits for the connection to be given
	// up. That takes no time, unless the server hangs while it is being made:
	// then it ends with the client's timeouts.
	parting = 250 * time.Millisecond
)

// A hub hands the server's hints to the watches of one store. They share one
// connection, which lasts as long as anybody watches. Hints may be lost, doubled
// or false: they only say that it may be worth to look.
type hub struct {
	client redis.UniversalClient
	events string // the prefix of the channels of keyspace events

	mu   sync.Mutex
	ears map[string]map[chan struct{}]struct{} // by key
	now  *listening                            // nil while nobody watches
}

// listening is one stretch of time with somebody to hand hints to.
type listening struct {
	changed chan struct{} // tells of keys that came or went
	stop    context.CancelFunc
	done    chan struct{}
}

func newHub(client redis.UniversalClient) *hub {
	db := 0 // also in a cluster
	if c, ok := client.(interface{ Options() *redis.Options }); ok {
		db = c.Options().DB
	}
	return &hub{
		client: client,
		events: fmt.Sprintf("__keyspace@%d__:", db),
		ears:   make(map[string]map[chan struct{}]struct{}),
	}
}

// join returns a channel that is given a value when it may be worth to look at
// key, and also when hints begin to come, anew perhaps. The caller calls leave in
// the end.
func (h *hub) join(key string) (hints <-chan struct{}, leave func()) {
	ear := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		h.now = h.listen()
	}
	if h.ears[key] == nil {
		h.ears[key] = make(map[chan struct{}]struct{})
		nudge(h.now.changed)
	}
	h.ears[key][ear] = struct{}{}
	return ear, func() { h.leave(key, ear) }
}

// leave takes an ear away, and after the last one waits for the connection to be
// given up.
func (h *hub) leave(key string, ear chan struct{}) {
	h.mu.Lock()
	now := h.now
	delete(h.ears[key], ear)
	if len(h.ears[key]) == 0 {
		delete(h.ears, key)
		nudge(now.changed)
	}
	last := len(h.ears) == 0
	if last {
		h.now = nil
	}
	h.mu.Unlock()
	if !last {
		return
	}
	now.stop()
	patience := time.NewTimer(parting)
	defer patience.Stop()
	select {
	case <-now.done:
	case <-patience.C:
	}
}

// nudge gives the channel a value unless it has one.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listen starts to hand out hints.
func (h *hub) listen() *listening {
	ctx, stop := context.WithCancel(context.Background())
	l := &listening{changed: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		h.keepListening(ctx, l.changed)
	}()
	return l
}

// keepListening makes one connection after the other. A server that refuses
// keyspace events is not asked for them again; one that refuses everything is
// asked seldom.
func (h *hub) keepListening(ctx context.Context, changed <-chan struct{}) {
	withEvents, pause := true, minReconnect
	for ctx.Err() == nil {
		heard, err := h.connect(ctx, changed, withEvents)
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
func (h *hub) connect(ctx context.Context, changed <-chan struct{}, withEvents bool) (heard bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	sub := h.client.Subscribe(ctx)
	var tuner sync.WaitGroup
	tuner.Go(func() {
		defer sub.Close() // ends the reading below
		h.tune(ctx, sub, changed, withEvents)
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
				h.hand(msg.Channel)
			}
		case *redis.Message:
			if !h.isRefresh(msg) {
				h.hand(msg.Channel)
			}
		}
	}
}

// isRefresh tells the events apart that a leader causes all the time.
func (h *hub) isRefresh(msg *redis.Message) bool {
	return msg.Payload == "expire" && strings.HasPrefix(msg.Channel, h.events)
}

// hand wakes those who watch the key of a channel.
func (h *hub) hand(channel string) {
	key, ok := strings.CutPrefix(channel, hintPrefix)
	if !ok {
		key, _ = strings.CutPrefix(channel, h.events)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ear := range h.ears[key] {
		nudge(ear)
	}
}

// tune keeps the subscriptions of one connection as the watches want them, and
// the connection busy enough to be found deaf. It ends with ctx, or when it
// cannot write.
func (h *hub) tune(ctx context.Context, sub *redis.PubSub, changed <-chan struct{}, withEvents bool) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	tuned := make(map[string]bool)
	for {
		add, drop := h.retune(tuned)
		err := each(ctx, add, hintPrefix, sub.Subscribe)
		if err == nil && withEvents {
			err = each(ctx, add, h.events, sub.Subscribe)
		}
		if err == nil {
			err = each(ctx, drop, hintPrefix, sub.Unsubscribe)
		}
		if err == nil && withEvents {
			err = each(ctx, drop, h.events, sub.Unsubscribe)
		}
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ping.C:
			if sub.Ping(ctx) != nil {
				return
			}
		}
	}
}

// retune makes tuned the set of keys that are watched, and returns what changed.
func (h *hub) retune(tuned map[string]bool) (add, drop []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.ears {
		if !tuned[key] {
			tuned[key] = true
			add = append(add, key)
		}
	}
	for key := range tuned {
		if h.ears[key] == nil {
			delete(tuned, key)
			drop = append(drop, key)
		}
	}
	return add, drop
}

// each sends one command for the channels of all the keys, if there are any.
func each(ctx context.Context, keys []string, prefix string, send func(context.Context, ...string) error) error {
	if len(keys) == 0 {
		return nil
	}
	channels := make([]string, len(keys))
	for i, key := range keys {
		channels[i] = prefix + key
	}
	return send(ctx, channels...)
}
