package rediskv

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// parting is how long the last watch waits for the connection to be given up.
// That takes no time, unless the server hangs while it is being made: then it
// ends with the client's timeouts.
const parting = time.Second

// A hub hands the server's hints to those who follow safes of one store. They share one
// connection, which lasts as long as anybody watches. Hints may be lost, doubled
// or false: they only say that it may be worth to look.
type hub struct {
	client redis.UniversalClient
	events string // the prefix of the channels of keyspace events

	mu   sync.Mutex
	ears map[string][]*sight // by key
	now  *listening          // nil while nobody watches
}

func newHub(client redis.UniversalClient) *hub {
	db := 0 // also in a cluster
	if c, ok := client.(interface{ Options() *redis.Options }); ok {
		db = c.Options().DB
	}
	return &hub{
		client: client,
		events: fmt.Sprintf("__keyspace@%d__:", db),
		ears:   make(map[string][]*sight),
	}
}

// join has a sight hinted at when it may be worth to look at key, and also when hints
// begin to come, anew perhaps. The caller calls leave in the end.
func (h *hub) join(key string, v *sight) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		h.now = h.listen()
	}
	if h.ears[key] == nil {
		h.now.change(key)
	}
	h.ears[key] = append(h.ears[key], v)
	return func() { h.leave(key, v) }
}

// leave takes a sight away, and after the last one waits for the connection to be
// given up.
func (h *hub) leave(key string, v *sight) {
	h.mu.Lock()
	now := h.now
	h.ears[key] = slices.DeleteFunc(h.ears[key], func(one *sight) bool { return one == v })
	if len(h.ears[key]) == 0 {
		delete(h.ears, key)
		now.change(key)
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

// hand hints at the key of a channel, with what a writer says of it.
func (h *hub) hand(channel, message string) {
	key, ok := strings.CutPrefix(channel, hintPrefix)
	if !ok {
		key, _ = strings.CutPrefix(channel, h.events)
		message = ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.ears[key] {
		v.hear(message)
	}
}
