package observer

import (
	"container/list"
	"math"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// most is how many names are remembered that are not watched. The name that was unused for
// the longest time is forgotten first: its record counts as seen for the first time, and lives
// for its TTL from then on.
const most = 1 << 14

// never is how long a record lives that is not judged.
const never = time.Duration(math.MaxInt64)

// A memory knows which revision of each record was seen last, and since when.
type memory struct {
	clock func() (mono, boot time.Duration)
	most  int

	mu      sync.Mutex
	seen    map[string]*list.Element // of sightings
	order   *list.List               // the one used last comes first
	watched map[string]int           // how many watches a name has
}

// A sighting is what was seen last of a name.
type sighting struct {
	name  string
	rec   kv.Record // as the register holds it
	since instant   // this revision was seen
}

func newMemory(clock func() (mono, boot time.Duration)) *memory {
	return &memory{
		clock: clock, most: most,
		seen: make(map[string]*list.Element), order: list.New(), watched: make(map[string]int),
	}
}

func (m *memory) now() instant {
	mono, boot := m.clock()
	return instant{mono, boot}
}

// saw notes what the register has said about a name in an answer that has arrived.
// Time runs from the first such moment of a revision: revisions never come back,
// so the record was not refreshed in between. A late answer with an earlier
// revision restarts the time, which errs on the slow side.
func (m *memory) saw(name string, rec kv.Record) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec.Foreign {
		m.drop(name)
		return
	}
	if s := m.last(name); s != nil {
		if s.rec.Revision != rec.Revision || !s.rec.Owns(rec) {
			s.rec, s.since = rec, now
		}
		return
	}
	m.seen[name] = m.order.PushFront(&sighting{name, rec, now})
	m.trim()
}

// vacant notes that the register holds nothing.
func (m *memory) vacant(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
}

// recall returns what was seen last of a name, and how long it will be before it
// is judged dead; the zero record if nothing is known.
func (m *memory) recall(name string) (rec kv.Record, left time.Duration) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.last(name); s != nil {
		return s.rec, s.left(now)
	}
	return kv.Record{}, never
}

// left returns how long it will be before a record that the register was said to hold is
// judged dead.
func (m *memory) left(name string, rec kv.Record) time.Duration {
	seen, left := m.recall(name)
	switch {
	case rec.Foreign || rec.TTL <= 0:
		return never
	case seen.Revision != rec.Revision || !seen.Owns(rec):
		return rec.TTL // another answer came in between
	}
	return left
}

// left returns the same for a sighting. If a clock has gone back since, it is not known how
// long ago that was, and time restarts: a clock that was set back by a year does not delay
// a judgement for a year.
func (s *sighting) left(now instant) time.Duration {
	if s.rec.TTL <= 0 {
		return never
	}
	elapsed := now.since(s.since)
	if elapsed < 0 {
		s.since, elapsed = now, 0
	}
	return s.rec.TTL - elapsed
}

// watch keeps a name from being forgotten until unwatch is called.
func (m *memory) watch(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[name]++
}

func (m *memory) unwatch(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched[name]--; m.watched[name] == 0 {
		delete(m.watched, name)
	}
	m.trim()
}

// last returns what was seen last of a name, or nil. The caller holds the mutex.
func (m *memory) last(name string) *sighting {
	e := m.seen[name]
	if e == nil {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*sighting)
}

// drop forgets a name. The caller holds the mutex.
func (m *memory) drop(name string) {
	if e := m.seen[name]; e != nil {
		m.order.Remove(e)
		delete(m.seen, name)
	}
}

// trim forgets names that are not watched, until no more than most are left. The caller holds
// the mutex.
func (m *memory) trim() {
	e := m.order.Back()
	for len(m.seen)-len(m.watched) > m.most && e != nil {
		name, next := e.Value.(*sighting).name, e.Prev()
		if m.watched[name] == 0 {
			m.drop(name)
		}
		e = next
	}
}
