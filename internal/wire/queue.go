package wire

import (
	"sync"
	"time"
)

// What may wait for a peer, and how much of it is written at once.
const (
	maxWaiting      = 256
	maxWaitingBytes = 4 << 20
	maxBatch        = 64 << 10
)

// A queue is what waits to be sent to a peer, connected or not. When there is no room,
// the oldest goes. What has waited for too long is of no use to anybody.
type queue struct {
	news chan struct{} // there is something, perhaps
	age  time.Duration // how long a message may wait

	mu      sync.Mutex
	waiting []message
	size    int
	writing bool // what was taken last is not written yet
}

// A message is one that waits.
type message struct {
	body  []byte
	since time.Time
}

func newQueue(age time.Duration) *queue { return &queue{news: make(chan struct{}, 1), age: age} }

// put appends a message, and reports how many had to go for it.
func (q *queue) put(body []byte) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
	q.waiting = append(q.waiting, message{body, time.Now()})
	q.size += len(body)
	for len(q.waiting) > maxWaiting || q.size > maxWaitingBytes {
		q.drop()
		dropped++
	}
	q.signal()
	return dropped
}

// take returns some of what waits, as frames, and nothing if nothing does.
func (q *queue) take() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget()
	var batch []byte
	for len(q.waiting) > 0 && (batch == nil || len(batch)+len(q.waiting[0].body) < maxBatch) {
		batch = appendFrame(batch, kindMessage, q.waiting[0].body)
		q.drop()
	}
	if len(q.waiting) > 0 {
		q.signal()
	}
	q.writing = batch != nil
	return batch
}

// written notes that what was taken is on its way.
func (q *queue) written() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = false
}

// empty reports whether nothing waits, and nothing is being written.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.writing
}

// forget drops what is too old.
func (q *queue) forget() {
	for len(q.waiting) > 0 && time.Since(q.waiting[0].since) > q.age {
		q.drop()
	}
}

// drop drops the first message.
func (q *queue) drop() {
	q.size -= len(q.waiting[0].body)
	q.waiting[0] = message{}
	q.waiting = q.waiting[1:]
}

func (q *queue) signal() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}
