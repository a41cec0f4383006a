// Package throttle bounds how many requests the elections of a process have at one store at
// a time, except for those on which a term or a return depends.
//
// Ten thousand elections that begin at once, or that get their store back at once, would
// ask for ten thousand things in the same moment. Their terms' refreshes would wait behind
// all of that in the client, on the network and in the server, and terms would end that
// have just begun. So the claims and looks of candidates that wait have to queue here, in the
// order in which they came. Refreshes, releases, and the looks of owners and of candidates that
// leave pass.
//
// A request that waits here has not been sent: neither its time limit nor the trust in what
// it brings has begun to count.
package throttle

import (
	"context"
	"reflect"
	"sync"

	"github.com/electkv/election/internal/gate"
	"github.com/electkv/election/kv"
)

// width is how many may be at one store. Fewer elections than that never wait.
const width = 128

// A queue is the requests at one store, on their way or waiting.
type queue struct {
	gate  *gate.Gate
	count int
}

// behind is how many requests that serve no election may be at one store beside those.
const behind = 4

// A class is the requests that wait for each other.
type class struct {
	store  kv.Store
	behind bool
}

// The queues that are not empty.
var (
	mu     sync.Mutex               //nolint:gochecknoglobals // elections that share a store know nothing of each other
	queues = make(map[class]*queue) //nolint:gochecknoglobals // see mu
)

// Enter waits until a request may be sent to the store. It returns the cause of ctx's end if
// that comes first. Call leave when the request has been answered.
func Enter(ctx context.Context, store kv.Store) (leave func(), err error) {
	return enter(ctx, class{store: store}, width)
}

// EnterBehind is Enter for what no election needs. It waits behind others of its kind, a few of
// which may be at one store, and nothing of an election waits behind it.
func EnterBehind(ctx context.Context, store kv.Store) (leave func(), err error) {
	return enter(ctx, class{store, true}, behind)
}

func enter(ctx context.Context, c class, width int) (leave func(), err error) {
	if !reflect.ValueOf(c.store).Comparable() { // it cannot be told from others
		return func() {}, nil
	}
	q := join(c, width)
	next, err := q.gate.Enter(ctx)
	if err != nil {
		q.part(c)
		return func() {}, err
	}
	return func() {
		next()
		q.part(c)
	}, nil
}

// Crowded reports whether a request to the store would have to wait now.
func Crowded(store kv.Store) bool {
	if !reflect.ValueOf(store).Comparable() {
		return false
	}
	mu.Lock()
	defer mu.Unlock()
	q := queues[class{store: store}]
	return q != nil && q.count >= width
}

// join counts one more request of a class.
func join(c class, width int) *queue {
	mu.Lock()
	defer mu.Unlock()
	q := queues[c]
	if q == nil {
		q = &queue{gate: gate.Fixed(width)}
		queues[c] = q
	}
	q.count++
	return q
}

// part counts one less, and forgets an empty queue.
func (q *queue) part(c class) {
	mu.Lock()
	defer mu.Unlock()
	if q.count--; q.count == 0 {
		delete(queues, c)
	}
}
