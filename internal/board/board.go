package board

import (
	"context"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// A Look reads a safe and calls show with what it holds: the zero record if it is vacant. It
// calls show at least once before it returns, and may keep it and call it later as well, when the
// store reports a change. Its calls are in the order of the states that they show, and the last
// one before it returns is not older than the look. It returns the latest time for the next
// look. An error ends the topic. The context ends when it has returned.
type Look func(ctx context.Context, show func(kv.Record)) (next time.Duration, err error)

// A Source is called when a safe is first followed. From then on it may call the topic's Hint,
// until end is called and has returned.
type Source func(name string, t *Topic) (look Look, end func(), err error)

// A Board shows what the safes of a store hold. It is safe for concurrent use.
type Board struct {
	source Source
	rest   time.Duration

	mu     sync.Mutex
	topics map[string]*Topic
	looks  int      // under way, but for those that take long
	lined  []*Topic // that are to look when it is their turn
}

// New returns a board. Between two looks at one safe that hints cause, there is at least
// a rest.
func New(rest time.Duration, source Source) *Board {
	return &Board{source: source, rest: rest, topics: make(map[string]*Topic)}
}

// Follow implements [kv.Board].
func (b *Board) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[name]
	if t == nil {
		t = b.open(name)
	}
	f := &follower{topic: t, tell: tell, since: t.begun, place: len(t.followers)}
	t.followers = append(t.followers, f)
	t.wanted = true
	t.arrange()
	return f.stop
}

// open begins a topic. It is called with mu held.
func (b *Board) open(name string) *Topic {
	t := &Topic{board: b, name: name}
	b.topics[name] = t
	return t
}

// Each safe that is followed adds this to the longest time between two looks at a safe without a
// hint. A vacant safe adds more, because no candidate waits for it.
const (
	shareOfHeld   = 10 * time.Millisecond
	shareOfVacant = 200 * time.Millisecond
)

// Backstop returns the longest time between two looks without a hint, at a safe that holds this
// record (none if it is zero): least, or more if many safes are followed.
func (b *Board) Backstop(least time.Duration, rec kv.Record) time.Duration {
	each := shareOfHeld
	if rec == (kv.Record{}) {
		each = shareOfVacant
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(least, time.Duration(len(b.topics))*each)
}

// Holds says that the store has just confirmed that a safe holds a record, as after a
// refresh. If that is what was shown last, the next look comes when next has passed: a hint
// comes for any change before that.
func (b *Board) Holds(name string, rec kv.Record, next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[name]; t != nil {
		t.holds(rec, next)
	}
}
