package etcdkv

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

const (
	// mostShare is how many records share a lease at most. A lease that is revoked takes
	// all of them along, and a server that deletes many keys at once does nothing else.
	mostShare = 500

	// mostTTLs is for how many TTLs records share a lease at most, or a little less. Whatever it
	// keeps alive that nobody has reckoned with, such as a copy of a write that was answered long
	// ago, fades then.
	mostTTLs = 240

	// restAfterRefusal is for how long no record moves after a server has refused a Txn with
	// some that were to.
	restAfterRefusal = time.Minute
)

// A sharing is what a store knows of the leases that records share.
//
// A leader's record is created with a shared lease. One that has a lease of its own, because it
// was handed over, moves to a shared one with a batch. Such a lease is kept alive for all of its
// records, so none of them fades by itself any more. So a shared lease has a list of the records
// that it backs or may back. A record leaves the list when it is known to be gone, or never to
// come. One that is on the list and is no longer refreshed was left behind: then the lease is
// closed, the others move to another one, and it fades with what is left. A create without an
// answer closes the lease at once.
//
// Until the answer to a move is known, a record is refreshed by keeping both leases alive.
type sharing struct {
	mu       sync.Mutex
	leases   map[string]*sharedLease         // by name; those that back something, or take more
	granting map[time.Duration]chan struct{} // by TTL; closed once that is over
	refused  time.Time                       // when a server refused a move
	full     time.Time                       // likewise, because it takes no writes
	emptied  map[string]struct{}             // keys: see empty
}

// A sharedLease is a lease that many records share.
type sharedLease struct {
	name    string
	asked   time.Duration       // its TTL, as it was asked for
	ttl     time.Duration       // as granted
	backs   map[string]*backing // by key
	joining int                 // records that are being created with it
	closed  bool                // it takes no more, and records leave it
	until   time.Time           // then it is closed
	kept    time.Time           // when it was last to be kept alive, or a little later
	proved  boottime.Instant    // when the last request was sent that has kept it alive for certain
	since   time.Time           // silence counts from then on
	checked time.Time           // when silents last looked at it for a batch
	glanced time.Time           // likewise, for anybody else
}

// A backing is a record that a lease backs, or may back.
type backing struct {
	signature string
	token     uint64
	ttl       time.Duration // in its text
	from      uint64        // the revision that it moves from, until it is known to have moved
	asked     time.Time     // when it was last to be refreshed
}

// A place is where a record is, as far as is known here.
type place struct {
	lease string // a shared one that backs it, or may; empty if none
	from  uint64 // the revision that it moves there from, until it is known to have moved
	leave bool   // the lease is closed
	old   string // another shared one that it is to leave for that, if any
}

// of returns the lease that backs the record at a key, or may. If the outcome of a move is not
// known, that is the lease it leads to, and old is the one to leave. It is called with the mutex
// held.
func (s *sharing) of(key string, rec kv.Record) (on, old *sharedLease) {
	if l := s.leases[rec.Lease]; l.has(key, rec) {
		l.backs[key].from = 0 // so it has moved there
		if !l.closed {
			return l, nil
		}
	}
	for _, l := range s.leases {
		switch {
		case !l.has(key, rec):
		case on == nil:
			on = l
		case l.backs[key].from != 0:
			on, old = l, on
		default:
			old = l
		}
	}
	return on, old
}

func (l *sharedLease) has(key string, rec kv.Record) bool {
	if l == nil || l.backs[key] == nil {
		return false
	}
	return l.backs[key].signature == rec.Signature && l.backs[key].token == rec.Token
}

// asks takes in that a record is to be refreshed, and returns where it is.
func (s *sharing) asks(key string, rec kv.Record, now time.Time) place {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, old := s.of(key, rec)
	if l := s.leases[rec.Lease]; l != nil {
		l.kept = now
	}
	if on == nil {
		return place{leave: s.left(rec.Lease)}
	}
	b := on.backs[key]
	b.asked, on.kept = now, now
	at := place{lease: on.name, from: b.from, leave: on.closed}
	if old != nil {
		old.backs[key].asked, old.kept = now, now
		at.old = old.name
	}
	return at
}

// leaves reports whether a record that has the lease is to leave it by itself.
func (s *sharing) leaves(lease string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left(lease) && now.Sub(s.full) >= restAfterRefusal
}

// left reports whether a lease is closed. It is called with the mutex held.
func (s *sharing) left(lease string) bool {
	l := s.leases[lease]
	return l != nil && l.closed
}

// move puts a record on the list of a lease that takes more, and returns the lease's name.
// If there is none, it returns nothing, and whether one would be of use. A record that is to
// leave a lease moves also when others do not.
func (s *sharing) move(key string, rec kv.Record, leaves bool, now time.Time) (lease string, lacking bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !leaves && now.Sub(s.refused) < restAfterRefusal {
		return "", false
	}
	s.closeIdle(now)
	to := s.open(whole(rec.TTL))
	if to == nil {
		return "", true
	}
	if !s.succeeds(key, rec) {
		return "", false
	}
	to.backs[key] = &backing{signature: rec.Signature, token: rec.Token, ttl: whole(rec.TTL), from: rec.Revision, asked: now}
	to.kept = now
	return to.name, false
}

// enter returns the lease that a new record is to have, or none, and keeps a place there until
// exit is called. It is the one with the fewest records, which leave it if the create has no
// answer. One that nobody has kept alive for long may be over, or back what was left behind.
func (s *sharing) enter(ttl time.Duration, now time.Time) spare.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var emptiest *sharedLease
	s.closeIdle(now)
	for _, l := range s.leases {
		if l.takes(ttl) && (emptiest == nil || l.size() < emptiest.size()) {
			emptiest = l
		}
	}
	if emptiest == nil {
		return spare.Lease{}
	}
	emptiest.joining++
	emptiest.kept = now
	return spare.Lease{ID: emptiest.name, TTL: emptiest.ttl}
}

// closeIdle closes those that nobody has kept alive for long. It is called with the mutex held.
func (s *sharing) closeIdle(now time.Time) {
	for _, l := range s.leases {
		l.closed = l.closed || now.Sub(l.kept) > l.ttl*3/4
	}
}

// exit takes in that the create of a record has ended.
func (s *sharing) exit(lease string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[lease]; l != nil {
		l.joining--
	}
}

// doubt takes in that a lease was not kept alive in time. If it backs nothing, it may be over.
func (s *sharing) doubt(lease string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[lease]; l != nil && l.size() == 0 {
		l.closed = true
	}
}

// joined puts a record on the list of a lease that it was created with.
func (s *sharing) joined(lease, key string, rec kv.Record, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[lease]; l != nil && s.succeeds(key, rec) {
		l.backs[key] = &backing{signature: rec.Signature, token: rec.Token, ttl: rec.TTL, asked: now}
	}
}

// succeeds reports whether no later record is known at a key, and strikes off what an earlier
// one has left. It is called with the mutex held.
func (s *sharing) succeeds(key string, rec kv.Record) bool {
	for _, l := range s.leases {
		if b := l.backs[key]; b != nil && b.token > rec.Token {
			return false
		}
	}
	for _, l := range s.leases {
		if b := l.backs[key]; b != nil && b.token < rec.Token {
			delete(l.backs, key)
		}
	}
	return true
}

// shared reports whether records share a lease.
func (s *sharing) shared(lease string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[lease] != nil
}

// open returns the fullest lease with that TTL that takes more records. It is called with
// the mutex held.
func (s *sharing) open(ttl time.Duration) (fullest *sharedLease) {
	for _, l := range s.leases {
		if l.takes(ttl) && (fullest == nil || l.size() > fullest.size()) {
			fullest = l
		}
	}
	return fullest
}

// takes reports whether a lease takes more records with that TTL.
func (l *sharedLease) takes(ttl time.Duration) bool {
	return (l.ttl == ttl || l.asked == ttl) && !l.closed && l.size() < mostShare
}

func (l *sharedLease) size() int { return len(l.backs) + l.joining }

// moved takes in that a record has moved to a lease from a revision.
func (s *sharing) moved(key string, rec kv.Record, lease string, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.leases[lease]
	if !to.has(key, rec) || to.backs[key].from != from {
		return
	}
	to.backs[key].from = 0
	for _, l := range s.leases {
		if l != to {
			delete(l.backs, key)
		}
	}
}

// stays takes in that a record never moves to a lease from a revision.
func (s *sharing) stays(key string, rec kv.Record, lease string, from uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to := s.leases[lease]; to.has(key, rec) && to.backs[key].from == from {
		delete(to.backs, key)
	}
}

// forget takes in that a record is gone.
func (s *sharing) forget(key string, rec kv.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.has(key, rec) {
			delete(l.backs, key)
		}
	}
}

// refuse takes in that a server has refused a Txn with records that were to move. Full says that
// it takes no writes at all.
func (s *sharing) refuse(now time.Time, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = now
	if full {
		s.full = now
	}
}

// A silent record is one of a shared lease that nobody refreshes any more.
type silent struct {
	key, lease string
	rec        kv.Record // signature and token
	from       uint64
}

// silents returns some of the records that nobody has refreshed for three quarters of a TTL.
// A leader refreshes its record three times in a TTL, so somebody should look at these. Time
// in which nothing at all was refreshed does not count: the process was asleep. A record that
// is silent for one and a quarter TTLs closes its lease in any case. Only a batch looks at
// them, so to anybody else it returns none.
func (s *sharing) silents(now time.Time, batch bool) (all []silent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		last := &l.glanced
		if batch {
			last = &l.checked
		}
		if now.Sub(*last) < l.ttl/8 {
			continue
		}
		if now.Sub(l.checked) > l.ttl*3/4 && now.Sub(l.glanced) > l.ttl*3/4 {
			l.since = now
		}
		*last = now
		if l.closed {
			s.drop(l, now)
			continue
		}
		l.closed = now.After(l.until)
		for key, b := range l.backs {
			quiet := min(now.Sub(b.asked), now.Sub(l.since))
			l.closed = l.closed || quiet > l.ttl*5/4
			if batch && quiet > l.ttl*3/4 && len(all) < txnOps {
				all = append(all, silent{key, l.name, kv.Record{Signature: b.signature, Token: b.token}, b.from})
			}
		}
	}
	return all
}

// drop forgets a closed lease that faded long ago. Until then it knows that what comes late is
// to leave it. It is called with the mutex held.
func (s *sharing) drop(l *sharedLease, now time.Time) {
	if l.joining == 0 && now.Sub(l.kept) >= 4*l.ttl {
		delete(s.leases, l.name)
	}
}

// close has a lease take no more records, and those that are refreshed leave it.
func (s *sharing) close(lease string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[lease]; l != nil {
		l.closed = true
	}
}

// begin reports whether a lease is to be granted. Then granted is called once.
func (s *sharing) begin(ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases == nil {
		s.leases, s.granting = make(map[string]*sharedLease), make(map[time.Duration]chan struct{})
	}
	if s.granting[ttl] != nil || s.open(ttl) != nil {
		return false
	}
	s.granting[ttl] = make(chan struct{})
	return true
}

// granted takes in the lease that was to be granted.
func (s *sharing) granted(ttl time.Duration, one spare.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.granting[ttl])
	delete(s.granting, ttl)
	if err == nil && one.TTL >= ttl {
		s.leases[one.ID] = &sharedLease{
			name: one.ID, asked: ttl, ttl: one.TTL, backs: make(map[string]*backing),
			until: one.Since.Add(mostTTLs*one.TTL - rand.N(mostTTLs/4*one.TTL)), kept: one.Since, since: one.Since, checked: one.Since, glanced: one.Since,
		}
	}
}

// wait waits while a lease is being granted.
func (s *sharing) wait(ctx context.Context, ttl time.Duration) error {
	s.mu.Lock()
	granting := s.granting[ttl]
	s.mu.Unlock()
	if granting == nil {
		return nil
	}
	select {
	case <-granting:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
