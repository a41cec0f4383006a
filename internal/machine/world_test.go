package machine_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// A world is a store, a few candidates, and what is on its way between them, at one
// instant. It is a value: worlds can be compared, and each move makes another one.
type world struct {
	now    time.Duration
	store  store
	nodes  [3]node
	late   [3]copyOf // requests that were given up, and may yet be carried out
	faults int       // that may still happen
	runs   int       // campaigns that may still begin
	stats  *stats
	wrong  string
}

// stats count what happened in all worlds that have one origin.
type stats struct {
	counts
	bug   bug
	canon machine.Canon // nil if worlds are not compared
}

type counts struct{ elected, handedOver, abandoned, missing, lost int }

// A bug is planted in the campaigns, or in the store.
type bug struct {
	event func(now time.Duration, asked machine.Request, e *machine.Event)
	state func(now time.Duration, after *machine.Campaign, effects *[]machine.Effect)
	carry func(s *store, r *machine.Request, now time.Duration)
}

type node struct {
	c       machine.Campaign
	cfg     *machine.Config
	runs    int // campaigns so far
	alive   bool
	sent    [2]machine.Request // by lock
	since   [2]time.Duration   // when
	seen    [2]machine.Sighting
	open    [2]bool
	lag     int       // ticks for which its watches are slow
	cut     int       // ticks for which nothing of the store reaches it
	answers [2]answer // under way
	paused  int       // ticks for which it does not run
	peeked  bool      // half of its hand-over is done: it has seen the heir
	left    [2]bool   // it has said that what may be there is left to fade
	term    bool      // the user has a term that was not released
	told    bool      // and was told that it has ended
	trust   machine.Trust
}

type answer struct {
	on      bool
	verdict machine.Verdict
	record  kv.Record
}

type copyOf struct {
	of   int
	req  machine.Request
	born time.Duration
}

// A store keeps two records, each as long as its lease.
type store struct {
	leases   bool // whether a record may be moved to another's lease
	steps    bool // whether a hand-over takes two steps
	rec      [2]kv.Record
	ends     [2]time.Duration // of records without a lease
	lease    [6]lease
	last     [2][8]string // the signatures that were in a key last
	again    [2]bool      // the record has a signature that was there before: a late copy has brought it back
	revision uint64
}

type lease struct {
	id   string
	ends time.Duration
}

func (s *store) leaseOf(id string) *lease {
	for i := range s.lease {
		if s.lease[i].id == id {
			return &s.lease[i]
		}
	}
	return nil
}

// live returns what a key holds.
func (s *store) live(k machine.Key, now time.Duration) (kv.Record, bool) {
	rec := s.rec[k]
	if rec.Signature == "" {
		return kv.Record{}, false
	}
	ends := s.ends[k]
	if rec.Lease != "" {
		l := s.leaseOf(rec.Lease)
		if l == nil {
			return kv.Record{}, false
		}
		ends = l.ends
	}
	return rec, now < ends
}

// put writes a record, and makes it last from now on.
func (s *store) put(k machine.Key, rec kv.Record, now time.Duration) kv.Record {
	s.revision++
	rec.Revision = s.revision
	if rec.Token == 0 {
		rec.Token = s.revision
	}
	if rec.Token == s.revision { // a new one
		s.again[k] = slices.Contains(s.last[k][:], rec.Signature)
		copy(s.last[k][1:], s.last[k][:])
		s.last[k][0] = rec.Signature
	}
	s.rec[k], s.ends[k] = rec, now+rec.TTL
	return rec
}

// lend makes a lease.
func (s *store) lend(now, ttl time.Duration) string {
	if !s.leases {
		return ""
	}
	for i := range s.lease {
		if l := &s.lease[i]; l.ends <= now || s.rec[0].Lease != l.id && s.rec[1].Lease != l.id {
			*l = lease{fmt.Sprintf("L%d", s.revision+1), now + ttl}
			return l.id
		}
	}
	panic("no room for a lease")
}

// free ends a lease that backs nothing any more.
func (s *store) free(id string) {
	if l := s.leaseOf(id); id != "" && l != nil && s.rec[0].Lease != id && s.rec[1].Lease != id {
		*l = lease{}
	}
}

// stands reports whether the heir's key holds a record.
func (s *store) stands(heir kv.Record, now time.Duration) bool {
	rec, ok := s.live(machine.Place, now)
	return ok && rec == heir
}

// carry carries a request out.
func (s *store) carry(r machine.Request, now time.Duration) (machine.Verdict, kv.Record) {
	cur, held := s.live(r.Key, now)
	switch r.Op {
	case machine.Ask:
		return machine.OK, kv.Record{}
	case machine.Get:
		if !held {
			return machine.Vacant, kv.Record{}
		}
		return machine.OK, cur
	case machine.Create:
		if held {
			return machine.Held, kv.Record{}
		}
		rec := r.New
		rec.Lease = s.lend(now, rec.TTL)
		return machine.OK, s.put(r.Key, rec, now)
	case machine.Displace:
		if !held || cur != r.Old {
			return machine.Stale, kv.Record{}
		}
		rec := r.New
		rec.Lease = s.lend(now, rec.TTL)
		defer s.free(cur.Lease)
		return machine.OK, s.put(r.Key, rec, now)
	case machine.HandOver:
		if !held || cur != r.Old || !s.steps && !s.stands(r.Heir, now) {
			return machine.Stale, kv.Record{}
		}
		rec := r.New
		rec.Token = 0
		defer s.free(cur.Lease)
		return machine.OK, s.put(r.Key, rec, now)
	case machine.Publish:
		if !held || cur != r.Old {
			return machine.Stale, kv.Record{}
		}
		ends := s.ends[r.Key]
		rec := cur
		rec.Value, rec.Note = r.New.Value, r.New.Note
		rec = s.put(r.Key, rec, now)
		s.ends[r.Key] = ends
		return machine.OK, rec
	case machine.Refresh:
		if !held || !cur.Owns(r.Old) {
			return machine.Stale, kv.Record{}
		}
		s.ends[r.Key] = now + cur.TTL
		if cur.Lease != "" {
			s.leaseOf(cur.Lease).ends = now + cur.TTL
		}
		return machine.OK, cur
	case machine.Delete, machine.Vacate:
		if heir, stands := s.live(machine.Place, now); stands && r.Op == machine.Vacate {
			return machine.Held, heir
		}
		if !held || !cur.Owns(r.Old) {
			return machine.Stale, kv.Record{}
		}
		s.rec[r.Key], s.ends[r.Key] = kv.Record{}, 0
		s.free(cur.Lease)
		return machine.OK, kv.Record{}
	}
	panic("no such request: " + r.Op.String())
}

func at(now time.Duration) machine.Instant { return machine.Instant{Mono: now, Boot: now} }

// step gives a node an event, and takes in the effects.
func (w *world) step(i int, e machine.Event) { w.give(i, e, machine.Request{}) }

// give does so; asked is the request that the event answers.
func (w *world) give(i int, e machine.Event, asked machine.Request) {
	n := &w.nodes[i]
	bug := w.stats.bug
	if bug.event != nil {
		bug.event(w.now, asked, &e)
	}
	c, effects := machine.Step(n.c, at(w.now), e)
	if again, more := machine.Step(c, at(w.now), machine.Event{}); again != c || len(more) > 0 {
		w.wrong = fmt.Sprintf("%d left something undone that was due: %v", i, more)
	}
	if bug.state != nil {
		bug.state(w.now, &c, &effects)
	}
	n.c = w.stats.canon.Of(c)
	if due := c.Due(); due <= w.now {
		w.wrong = fmt.Sprintf("%d is due at once, for ever", i)
	}
	for _, f := range effects {
		switch f.Kind {
		case machine.HandedOver:
			w.stats.handedOver++
		case machine.Abandoned:
			w.stats.abandoned++
			n.left[f.Key] = true
		case machine.Missing:
			w.stats.missing++
		case machine.Send:
			n.sent[f.Key], n.since[f.Key] = f.Request, w.now
		case machine.Hurry:
			if n.sent[f.Key].ID == f.Request.ID {
				n.sent[f.Key].Within = w.now - n.since[f.Key] + f.Request.Within
			}
		case machine.Elected:
			n.term, n.told, n.trust = true, false, f.Trust
			w.stats.elected++
		case machine.Extended:
			if f.Key == machine.Lead {
				if n.trust.Left(at(w.now)) <= 0 {
					w.wrong = fmt.Sprintf("%d trusts again what had run out", i)
				}
				n.trust = f.Trust
			}
		case machine.Ended:
			if f.Key == machine.Lead {
				n.told = true
				w.stats.lost++
			}
		case machine.Left:
			n.term = false
		}
	}
	for k := range machine.Key(2) {
		if open := n.c.Watched(k); open != n.open[k] {
			n.open[k], n.seen[k] = open, machine.Sighting{}
		}
	}
	if n.idle() {
		w.wrong = fmt.Sprintf("%d stands, and waits for nothing", i)
	}
}

// idle reports whether nothing can ever wake a candidate that stands.
func (n *node) idle() bool {
	waits := n.c.Due() < math.MaxInt64 || n.c.Watched(machine.Lead) || n.c.Watched(machine.Place)
	return n.c.Stage == machine.Standing && !waits && n.sent[machine.Lead].ID == 0 && n.sent[machine.Place].ID == 0
}

// look returns what a watch would show.
func (w *world) look(k machine.Key) machine.Sighting {
	rec, _ := w.store.live(k, w.now)
	return machine.Sighting{Known: true, Record: live(rec, w, k)}
}

func live(rec kv.Record, w *world, k machine.Key) kv.Record {
	if _, ok := w.store.live(k, w.now); !ok {
		return kv.Record{}
	}
	return rec
}

// answer gives a node the answer to a request.
func (w *world) answer(i int, k machine.Key, v machine.Verdict, rec kv.Record) {
	n := &w.nodes[i]
	r := n.sent[k]
	sent := n.since[k]
	n.sent[k], n.since[k], n.answers[k] = machine.Request{}, 0, answer{}
	n.peeked = n.peeked && k != machine.Lead
	a := machine.Answer{ID: r.ID, Key: k, Verdict: v, Record: rec, Sent: at(sent)}
	w.give(i, machine.Event{Kind: machine.Answered, Answer: a}, r)
}

// giveUp leaves a request to be carried out later, if there is room for it.
func (w *world) giveUp(i int, r machine.Request) bool {
	if r.Op == machine.Ask || r.Op == machine.Get {
		return true
	}
	for j := range w.late {
		if w.late[j].req.Op == machine.NoOp {
			w.late[j] = copyOf{i, r, w.now}
			return true
		}
	}
	return false
}

// carry carries a request out.
func (w *world) carry(r machine.Request, now time.Duration) (machine.Verdict, kv.Record) {
	if plant := w.stats.bug.carry; plant != nil {
		plant(&w.store, &r, now)
	}
	return w.store.carry(r, now)
}
