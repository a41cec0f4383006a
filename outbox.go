package election

import (
	"sync"
	"time"
)

const (
	outboxSize  = 256         // calls that wait; one more drops the oldest
	outboxPause = time.Second // the longest that they may delay a return
)

// An outbox makes calls of the user's code, one at a time and in order, on a goroutine
// that lasts while there are any: a log handler or a hook that blocks must never delay
// a refresh or the end of a term. Posting does not block.
type outbox struct {
	mu      sync.Mutex
	waiting []func()
	dropped int
	idle    chan struct{} // closed when all calls have been made; nil while there are none
}

// post arranges for do to be called soon.
func (o *outbox) post(do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == outboxSize {
		o.waiting = o.waiting[1:]
		o.dropped++
	}
	o.waiting = append(o.waiting, do)
	if o.idle == nil {
		o.idle = make(chan struct{})
		go o.work()
	}
}

// work makes the calls, until there are none left.
func (o *outbox) work() {
	for {
		o.mu.Lock()
		if len(o.waiting) == 0 {
			close(o.idle)
			o.waiting, o.idle = nil, nil
			o.mu.Unlock()
			return
		}
		do := o.waiting[0]
		o.waiting = o.waiting[1:]
		o.mu.Unlock()
		do()
	}
}

// lost returns how many calls were dropped since it was asked last.
func (o *outbox) lost() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.dropped
	o.dropped = 0
	return n
}

// flush waits until all calls have been made, for a second at most.
func (o *outbox) flush() {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle != nil {
		pauseFor(idle)
	}
}

// pauseFor waits until calls of the user's code have been made, for a second at most.
func pauseFor(made <-chan struct{}) {
	patience := time.NewTimer(outboxPause)
	defer patience.Stop()
	select {
	case <-made:
	case <-patience.C:
	}
}
