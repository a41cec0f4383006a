package board

import (
	"context"
	"time"

	"github.com/electkv/election/kv"
)

// A Topic is a safe that is followed. Its fields are guarded by the board's mutex.
type Topic struct {
	board *Board
	name  string
	over  bool               // it is not followed any more
	stop  context.CancelFunc // ends the look that is under way, nil if none is

	look Look   // nil before the first one
	end  func() // of the source; nil if there is none

	record  kv.Record // what the safe holds, zero if that is nothing
	version uint64    // counts the records; zero if none was shown yet
	err     error     // what ended the topic

	looking chan struct{} // closed when the look that is under way has ended; nil if none is
	lined   bool          // it is in the board's line
	late    *time.Timer   // makes room for another look than its own; nil if there is room
	begun   uint64        // looks that have begun
	known   uint64        // of them, those that have ended
	wanted  bool          // a follower waits for a look
	hinted  bool          // it may be worth looking
	last    time.Time     // when the last look ended
	latest  time.Time     // when the next one begins at the latest
	alarm   *time.Timer

	followers []*follower
}

// Hint says that it may be worth looking.
func (t *Topic) Hint() {
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	t.hinted = true
	t.arrange()
}

// arrange makes sure that there is a look when one is due.
func (t *Topic) arrange() {
	switch {
	case t.looking != nil || t.lined || t.over || t.err != nil:
	case t.wanted:
		t.board.line(t)
	case t.hinted:
		if wait := t.board.rest - time.Since(t.last); wait > 0 {
			t.alarm.Reset(min(wait, time.Until(t.latest)))
			return
		}
		t.board.line(t)
	}
}

// begin begins a look.
func (t *Topic) begin() {
	t.wanted, t.hinted = false, false
	t.begun++
	t.looking = make(chan struct{})
	if t.alarm != nil {
		t.alarm.Stop()
	}
	ctx, stop := context.WithCancel(context.Background()) // for this look, since one that is kept is large
	t.stop = stop
	go t.run(ctx)
}

// run looks once.
func (t *Topic) run(ctx context.Context) {
	next, err := t.see(ctx)
	b := t.board
	b.mu.Lock()
	defer b.mu.Unlock()
	close(t.looking)
	t.stop()
	t.makeRoom()
	t.stop, t.looking, t.known, t.last = nil, nil, t.begun, time.Now()
	if t.over {
		return
	}
	if err != nil {
		t.fail(err)
		return
	}
	t.tell()
	t.latest = t.last.Add(next)
	if t.alarm == nil {
		t.alarm = time.AfterFunc(next, t.due)
	} else {
		t.alarm.Reset(next)
	}
	t.arrange()
}

// see calls the source, if that was not done yet, and looks.
func (t *Topic) see(ctx context.Context) (next time.Duration, err error) {
	if t.look == nil {
		if t.look, t.end, err = t.board.source(t.name, t); err != nil {
			return 0, err
		}
	}
	return t.look(ctx, t.show)
}

// due looks if it is time. It may be called too early: when a hint has begun a look sooner,
// or when the time was put off.
func (t *Topic) due() {
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	early := time.Until(t.latest)
	if early > 0 && t.looking == nil && !t.hinted {
		t.alarm.Reset(early)
		return
	}
	if early <= 0 && t.looking == nil {
		t.wanted = true
	}
	t.arrange()
}

// holds puts the next look off if rec is what was shown last, and no follower waits for a look.
func (t *Topic) holds(rec kv.Record, next time.Duration) {
	later := time.Now().Add(next)
	if t.looking == nil && !t.hinted && rec.Owns(t.record) && rec.Revision == t.record.Revision && later.After(t.latest) {
		t.latest = later
	}
}

// show notes what the safe holds.
func (t *Topic) show(rec kv.Record) {
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	if t.version == 0 || rec != t.record {
		t.record = rec
		t.version++
		t.tell()
	}
}

// fail ends the topic, and tells its followers why.
func (t *Topic) fail(err error) {
	t.err = err
	if t.board.topics[t.name] == t {
		delete(t.board.topics, t.name)
	}
	t.tell()
}

// tell has all followers told what they do not know.
func (t *Topic) tell() {
	for _, f := range t.followers {
		f.wake()
	}
}

// leave takes a follower away. With the last one, what the topic began ends. It is called
// with the board's mutex held, and returns what the caller has to wait for without it.
func (t *Topic) leave(f *follower) (wait func()) {
	end := len(t.followers) - 1
	last := t.followers[end]
	t.followers[f.place], last.place = last, f.place
	t.followers[end] = nil
	if t.followers = t.followers[:end]; end > 0 {
		return func() {}
	}
	if t.board.topics[t.name] == t {
		delete(t.board.topics, t.name)
	}
	t.over = true
	if t.stop != nil {
		t.stop()
	}
	if t.alarm != nil {
		t.alarm.Stop()
	}
	looking := t.looking
	return func() {
		if looking != nil {
			<-looking
		}
		if t.end != nil {
			t.end()
		}
	}
}
