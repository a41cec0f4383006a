package wire

import "sync"

// What may wait for a peer, and how much of it is written at once.
const (
	maxWaiting      = 256
	maxWaitingBytes = 4 << 20
	maxBatch        = 64 << 10
)

// A queue is what waits to be sent. When there is no room, the oldest goes.
type queue struct {
	news chan struct{} // there is something, perhaps

	mu      sync.Mutex
	waiting [][]byte
	size    int
}

func newQueue() *queue { return &queue{news: make(chan struct{}, 1)} }

// put appends a message, and reports how many had to go for it.
func (q *queue) put(message []byte) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, message)
	q.size += len(message)
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
	var batch []byte
	for len(q.waiting) > 0 && (batch == nil || len(batch)+len(q.waiting[0]) < maxBatch) {
		batch = appendFrame(batch, kindMessage, q.waiting[0])
		q.drop()
	}
	if len(q.waiting) > 0 {
		q.signal()
	}
	return batch
}

// drop forgets the first message.
func (q *queue) drop() {
	q.size -= len(q.waiting[0])
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
}

func (q *queue) signal() {
	select {
	case q.news <- struct{}{}:
	default:
	}
}
