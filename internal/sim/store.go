package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A store is the true state of an election's safes. Its operations are carried out
// at the moment at which they arrive: delays and losses are the network's.
type store struct {
	w     *World
	clock Clock

	mu     sync.Mutex
	safes  []*safe           // the leader's first
	lives  map[string]*life  // by lease, where the schedule has leases
	owners map[string]string // the candidate's name, by signature
	count  uint64            // the last token or revision
	down   bool
}

const never = time.Duration(1<<63 - 1)

func newStore(w *World) *store {
	s := &store{w: w, clock: Clock{Rate: w.Store.Rate}, lives: map[string]*life{}, owners: map[string]string{}}
	for i, name := range []string{"", history.Heir, history.Request} {
		s.safes = append(s.safes, &safe{store: s, name: name, index: i, inside: map[int]uint64{}})
	}
	return s
}

// safe returns the safe that a name is of, as [history.SafeOf] has it.
func (s *store) safe(name string) *safe {
	return s.safes[slices.IndexFunc(s.safes, func(f *safe) bool { return f.name == name })]
}

// next returns a number larger than every earlier one. The caller holds the
// mutex.
func (s *store) next() uint64 {
	s.count += 1 + s.w.roll(uint64(s.w.Now()), rollToken)%3
	return s.count
}

// A life is how long records live that one lease keeps alive, or one record that
// keeps itself alive.
type life struct {
	lease   string // empty if a record keeps itself alive
	places  []*place
	expires time.Duration // in true time; never, if the records are permanent
	expiry  *time.Timer
}

// span returns how long a record lives that is written now, on the store's
// clock: its TTL, and no longer than the store is lazy.
func (s *store) span(rec kv.Record) time.Duration {
	return rec.TTL + s.w.below(s.w.Store.Lazy+1, uint64(s.w.Now()), rollLife)
}

// live sets when a life ends: a span from a true time on. Where observers judge,
// nothing ends here; they may from then on.
func (s *store) live(l *life, from, span time.Duration) {
	l.stop()
	if slices.ContainsFunc(l.places, func(p *place) bool { return p.rec.Permanent }) {
		return
	}
	if s.w.Store.Expiry == ByObserver {
		l.expires = from + span - span/50
		return
	}
	l.expires = s.clock.After(from, span)
	l.expiry = time.AfterFunc(max(l.expires-s.w.Now(), 1), func() { s.lapse(l) })
}

// stop lets a life go on for ever.
func (l *life) stop() {
	l.expires = never
	if l.expiry != nil {
		l.expiry.Stop()
	}
}

// lapse ends all places whose life is over.
func (s *store) lapse(l *life) {
	for _, f := range s.safes {
		f.change(func() {
			if s.w.Now() < l.expires {
				return // it was refreshed meanwhile
			}
			for _, p := range slices.Clone(l.places) {
				if slices.Contains(f.line, p) {
					f.drop(p)
					f.lapsed = true
				}
			}
		})
	}
}

// leave takes a place from its life, which ends with the last.
func (s *store) leave(p *place) {
	l := p.life
	l.places = slices.DeleteFunc(l.places, func(other *place) bool { return other == p })
	if len(l.places) == 0 {
		l.stop()
		delete(s.lives, l.lease)
	}
}

// begin gives a place a life of its own.
func (s *store) begin(p *place) {
	p.life = &life{places: []*place{p}}
	if s.w.Store.Leases && !p.rec.Foreign {
		p.rec.Lease = fmt.Sprintf("lease %d", p.rec.Token)
		p.life.lease = p.rec.Lease
		s.lives[p.rec.Lease] = p.life
	}
}

// stop takes the store down; start brings it up again with what it held, which
// lives anew from then on if its clock stood still meanwhile.
func (s *store) stop(anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	for _, f := range s.safes {
		for _, p := range f.line {
			if anew {
				p.life.stop()
			}
		}
		for _, st := range f.watchers {
			st.push(sight{broken: true})
		}
		f.watchers = nil
	}
}

func (s *store) start(anew bool) {
	s.mu.Lock()
	s.down = false
	s.mu.Unlock()
	n := 0
	for _, f := range s.safes {
		f.change(func() {
			for _, p := range f.line {
				if anew { // no two end at once
					s.live(p.life, s.w.Now(), s.span(p.rec)+time.Duration(10*n))
				}
				n++
			}
		})
	}
}
