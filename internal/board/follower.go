package board

import "github.com/electkv/election/kv"

// A follower is told what a safe holds: the newest state that it does not know, one call
// at a time, by a goroutine that lasts as long as there is something to tell. Its fields
// are guarded by the board's mutex.
type follower struct {
	topic *Topic
	place int // among the topic's followers
	tell  func(kv.Record, error)

	since uint64        // the looks that had begun when it came: none of them is for it
	told  uint64        // the version that it was told last
	over  bool          // it was told of the end
	busy  chan struct{} // closed when the call that is under way has ended; nil if none is
	left  chan struct{} // closed when the first stop is done; nil before it
}

// knows reports whether there is nothing to tell.
func (f *follower) knows() bool {
	t := f.topic
	switch {
	case f.left != nil || f.over:
		return true
	case t.err != nil:
		return false
	}
	return t.known <= f.since || f.told == t.version
}

// wake starts telling the follower what it does not know.
func (f *follower) wake() {
	if f.busy == nil && !f.knows() {
		f.busy = make(chan struct{})
		go f.run()
	}
}

// run tells until there is nothing to tell.
func (f *follower) run() {
	t := f.topic
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	for !f.knows() {
		rec, err := t.record, t.err
		f.told, f.over = t.version, err != nil
		switch {
		case err != nil:
			rec = kv.Record{}
		case rec == (kv.Record{}):
			err = kv.ErrVacant
		}
		t.board.mu.Unlock()
		f.tell(rec, err)
		t.board.mu.Lock()
	}
	close(f.busy)
	f.busy = nil
}

// stop makes sure that the follower is told nothing more, and returns when that is so.
func (f *follower) stop() {
	b := f.topic.board
	b.mu.Lock()
	if f.left != nil {
		b.mu.Unlock()
		<-f.left
		return
	}
	f.left = make(chan struct{})
	defer close(f.left)
	busy, wait := f.busy, f.topic.leave(f)
	b.mu.Unlock()
	if busy != nil {
		<-busy
	}
	wait()
}
