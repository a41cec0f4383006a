package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A store is the true state of one safe. Its operations are carried out at the
// moment at which they are called: delays and losses are the network's.
type store struct {
	w     *World
	clock Clock

	mu       sync.Mutex
	rec      kv.Record     // the zero record if the safe is vacant
	expires  time.Duration // in true time; never, if the record is permanent
	expiry   *time.Timer
	count    uint64 // the last token or revision
	lapsed   bool   // the safe is vacant because a record expired
	down     bool
	queued   bool // somebody else waits for the safe
	placed   bool // or has it
	watchers []*stream
}

const never = time.Duration(1<<63 - 1)

func newStore(w *World) *store {
	return &store{w: w, clock: Clock{Rate: w.Store.Rate}}
}

// A change is what an operation makes of a record, or an error why it does not.
type change func(kv.Record) (kv.Record, error)

// write carries out one write for a candidate: the change sees the live record,
// or the zero record.
func (s *store) write(who string, call uint64, op string, do change) (kv.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return kv.Record{}, errDown
	}
	rec, err := do(s.rec)
	if err != nil {
		return kv.Record{}, err
	}
	s.w.Note(history.Event{Who: who, Kind: history.Committed, Op: op, Call: call, Token: rec.Token})
	if op == opSwap && rec.Owns(s.rec) { // a value change is no refresh
		s.rec = rec
		s.tell()
		return rec, nil
	}
	s.set(rec, s.life(rec))
	return rec, nil
}

// life returns how long a record lives that is written now, on the store's
// clock: its TTL, and no longer than the store is lazy.
func (s *store) life(rec kv.Record) time.Duration {
	return rec.TTL + s.w.below(s.w.Store.Lazy+1, uint64(s.w.Now()), rollLife)
}

// set puts a record in, for a life on the store's clock, and tells all watchers
// what has changed. The caller holds the mutex.
func (s *store) set(rec kv.Record, life time.Duration) {
	changed := rec != s.rec
	s.rec, s.lapsed = rec, false
	s.live(life)
	if changed {
		s.tell()
	}
}

// live sets when the record expires. A second way to judge that, by whoever
// observes the record, would set no time here.
func (s *store) live(life time.Duration) {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.expires = never
	if s.rec == (kv.Record{}) || s.rec.Permanent {
		s.vacate()
		return
	}
	now := s.w.Now()
	s.expires = s.clock.After(now, life)
	s.expiry = time.AfterFunc(s.expires-now, s.lapse)
}

// vacate lets in whoever else waits for a vacant safe.
func (s *store) vacate() {
	if !s.queued || s.rec != (kv.Record{}) || s.down {
		return
	}
	s.queued, s.placed = false, true
	s.rec = kv.Record{Value: foreignValue, Foreign: true, Permanent: true, Revision: s.next()}
	s.w.Note(history.Event{Kind: history.Placed, Value: foreignValue, Text: "somebody else's record"})
}

const foreignValue = "locked by hand"

// lapse ends a record whose life is over.
func (s *store) lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w.Now() < s.expires {
		return // it was refreshed meanwhile
	}
	s.set(kv.Record{}, 0)
	s.lapsed = true
}

func (s *store) isLapsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lapsed
}

// next returns a number larger than every earlier one. The caller holds the
// mutex.
func (s *store) next() uint64 {
	s.count += 1 + s.w.roll(uint64(s.w.Now()), rollToken)%3
	return s.count
}

// tell sends the present state to all watchers.
func (s *store) tell() {
	for _, st := range s.watchers {
		st.push(sight{rec: s.rec})
	}
}

// get returns what the safe holds.
func (s *store) get() (kv.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return kv.Record{}, errDown
	}
	return state(s.rec)
}

func state(rec kv.Record) (kv.Record, error) {
	if rec == (kv.Record{}) {
		return rec, kv.ErrVacant
	}
	return rec, nil
}

// watch sends the present state and every change to a stream, until it is
// forgotten or the store goes down.
func (s *store) watch(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		st.push(sight{broken: true})
		return
	}
	if st.gone {
		return
	}
	if !slices.Contains(s.watchers, st) {
		s.watchers = append(s.watchers, st)
	}
	st.push(sight{rec: s.rec})
}

func (s *store) forget(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.gone = true
	s.watchers = slices.DeleteFunc(s.watchers, func(other *stream) bool { return other == st })
}

// stop takes the store down; start brings it up again with what it held, which
// lives anew from then on if its clock stood still meanwhile.
func (s *store) stop(anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	if anew && s.expiry != nil {
		s.expires = never
		s.expiry.Stop()
	}
	for _, st := range s.watchers {
		st.push(sight{broken: true})
	}
	s.watchers = nil
}

func (s *store) start(anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
	if anew {
		s.live(s.life(s.rec))
	}
	s.vacate()
}

// remove empties the safe as an operator would: until its leader finds out, or
// its trust has run out, two may lead.
func (s *store) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down || s.rec.Foreign || s.rec == (kv.Record{}) {
		return
	}
	within := s.rec.TTL
	if s.w.quiet(s.w.TTL, Remove) { // then its next refresh tells
		within = s.w.TTL / 2
	}
	s.w.Note(history.Event{Kind: history.Interfered, Token: s.rec.Token, Within: within, Text: "an operator deletes the record"})
	s.set(kv.Record{}, 0)
}

// enqueue lets somebody else wait for the safe, who uses it for a lock.
func (s *store) enqueue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placed {
		return
	}
	s.queued = true
	s.vacate()
	if s.placed {
		s.tell()
	}
}

// dequeue takes that lock away again, and reports what has become of it.
func (s *store) dequeue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = false
	if !s.placed {
		return
	}
	s.placed = false
	s.w.Note(history.Event{Kind: history.Found, Value: s.rec.Value})
	if s.rec.Foreign {
		s.set(kv.Record{}, 0)
	}
}
