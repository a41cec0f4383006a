package consulkv

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
)

const (
	// mostShare is how many keys a session has at most that records share, in all its life.
	mostShare = 500

	// lives is how many TTLs Consul keeps a session that nobody renews, and this package a
	// record of a shared session that nobody refreshes.
	lives = 2

	// mostStuck is for how many TTLs terms go on whose session also backs what was left behind
	// and cannot be let go.
	mostStuck = 60
)

// A sharing is what a store knows of the sessions that records share.
//
// Such a session is renewed for all of its records, so none of them fades by itself any more.
// So it has a list of the keys that it was ever to lock. None leaves the list before the
// session is over: a create whose answer is lost may be carried out at any time, and so may a
// copy of one that was answered. What is on the list and is no longer refreshed, the store
// looks at. A record that is there although nobody has asked to refresh it for two TTLs it
// lets go, as Consul would have done with a session of its own.
//
// What cannot be let go, for want of the rights to its key, is there for as long as the session is
// renewed. After a TTL of that the session takes no more records. After mostStuck TTLs no renewal
// counts any more, so that its other terms end, and it is left to expire when their work is over.
//
// A session locks a key for one record only: a guard knows a term by its session.
type sharing struct {
	mu       sync.Mutex
	sessions map[string]*sharedSession       // by ID
	granting map[time.Duration]chan struct{} // by TTL; closed once that is over
}

// A sharedSession is a session that many records share.
type sharedSession struct {
	id    string
	ttl   time.Duration
	backs map[string]*backing // by key
	acked boottime.Instant    // when the last renewal was sent that Consul has acknowledged
	full  bool                // it takes no more records, whatever their keys are
	over  bool                // no renewal of it counts any more: it was not renewed in time, or why says
	why   error               // what was left behind and cannot be let go

	tended time.Time // when silents went through its list
}

// A backing is a key that a session has locked, or was to lock.
type backing struct {
	signature string    // of the record
	spent     bool      // the session has locked the key, or may have
	asked     time.Time // when the last call began that was to create or refresh the record
	look      time.Time // when to look whether it was left behind
	fading    bool      // nobody has asked for too long: whatever is there is let go
	gone      bool      // nothing was there when it was last seen
	stuck     time.Time // since when nobody could see what is there, or let it go; zero if not
}

// A standing is what is known of a record's session.
type standing int

const (
	alone  standing = iota // it is not shared
	backed                 // it is shared, and may be renewed
	late                   // it is shared, and no renewal counts any more
	ended                  // it is shared, and backs the record no longer
)

// asks takes in that a record is to be refreshed, and returns how it stands. What Consul has not
// renewed for a TTL backs nobody's trust any more. Its records may still be kept, while work goes on
// that has lost its term: they keep others out for as long as Consul has them.
func (s *sharing) asks(session, key, signature string, now boottime.Instant) standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sessions[session]
	if l != nil && now.Since(l.acked) >= l.ttl {
		l.over = true
	}
	stands := l.stands(key, signature)
	if stands == backed || stands == late {
		b := l.backs[key]
		b.asked, b.look, b.spent = now.Mono, now.Mono.Add(lives*l.ttl), true
		b.gone, b.stuck = false, time.Time{}
	}
	return stands
}

// keeps reports whether a record's session still backs it.
func (s *sharing) keeps(session, key, signature string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stands := s.sessions[session].stands(key, signature)
	return stands == alone || stands == backed
}

func (l *sharedSession) stands(key, signature string) standing {
	if l == nil {
		return alone
	}
	b := l.backs[key]
	switch {
	case b == nil || b.signature != signature || b.fading:
		return ended
	case l.over:
		return late
	}
	return backed
}

// enter returns a session for a new record, or none, and takes the key up in its list. It
// is the fullest that takes the key.
func (s *sharing) enter(ttl time.Duration, key, signature string, now boottime.Instant) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fullest *sharedSession
	for _, l := range s.sessions {
		if l.takes(ttl, key, now) && (fullest == nil || len(l.backs) > len(fullest.backs)) {
			fullest = l
		}
	}
	if fullest == nil {
		return ""
	}
	fullest.backs[key] = &backing{signature: signature, spent: true, asked: now.Mono, look: now.Mono.Add(lives * ttl)}
	return fullest.id
}

// takes reports whether a session takes a record with that TTL, at that key if it is not empty.
// What Consul has not renewed for a TTL may end while it is renewed.
func (l *sharedSession) takes(ttl time.Duration, key string, now boottime.Instant) bool {
	if l.ttl != ttl || l.full || l.over || now.Since(l.acked) >= l.ttl {
		return false
	}
	if b := l.backs[key]; b != nil {
		return !b.spent && !b.fading
	}
	return len(l.backs) < mostShare
}

// free takes in that a record was not created, and will not be.
func (s *sharing) free(session, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.sessions[session]; l != nil && l.backs[key] != nil {
		l.backs[key].spent = false
	}
}

// renewed takes in that Consul has renewed a session, as was asked at an instant. It reports
// whether that counts. A session that was not renewed for longer than its TTL may have been at
// its end meanwhile, and no renewal counts again.
func (s *sharing) renewed(session string, sent, now boottime.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sessions[session]
	switch {
	case l == nil:
		return true
	case l.over:
		return false
	case now.Since(l.acked) >= l.ttl:
		l.over = true
		return false
	case sent.Mono.After(l.acked.Mono):
		l.acked = sent
	}
	return true
}

// close has a session take no more records.
func (s *sharing) close(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.sessions[session]; l != nil {
		l.full = true
	}
}

// shared reports whether records share a session.
func (s *sharing) shared(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session] != nil
}

// ofUse reports whether a record with the key can share a session that is there, or one that
// is granted for it. A session is not granted for the sake of one key.
func (s *sharing) ofUse(ttl time.Duration, key string, now boottime.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := false
	for _, l := range s.sessions {
		if l.takes(ttl, key, now) {
			return true
		}
		others = others || l.takes(ttl, "", now)
	}
	return !others
}

// begin reports whether a session is to be granted. Then granted is called once.
func (s *sharing) begin(ttl time.Duration, now boottime.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granting[ttl] != nil {
		return false
	}
	for id, l := range s.sessions {
		if l.takes(ttl, "", now) {
			return false
		}
		if l.endedLongAgo(now) {
			delete(s.sessions, id)
		}
	}
	if s.sessions == nil {
		s.sessions, s.granting = make(map[string]*sharedSession), make(map[time.Duration]chan struct{})
	}
	s.granting[ttl] = make(chan struct{})
	return true
}

// endedLongAgo reports whether a session has ended, whatever is on its way to Consul, a renewal or a
// lock. Until then its list is needed, and so is the knowledge that it was not renewed in time: a
// record of it may be kept for work that goes on after its term.
func (l *sharedSession) endedLongAgo(now boottime.Instant) bool {
	const long = 4 * lives
	if now.Since(l.acked) < long*l.ttl {
		return false
	}
	for _, b := range l.backs {
		if now.Mono.Sub(b.asked) < long*l.ttl {
			return false
		}
	}
	return true
}

// granted takes in the session that was to be granted; none if there was an error.
func (s *sharing) granted(ttl time.Duration, id string, asked boottime.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.granting[ttl])
	delete(s.granting, ttl)
	if id != "" {
		s.sessions[id] = &sharedSession{id: id, ttl: ttl, backs: make(map[string]*backing), acked: asked}
	}
}

// wait waits while a session is being granted.
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

// silents returns for each session the keys that it is time to look at, at most so many.
func (s *sharing) silents(now time.Time, most int) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all map[string][]string
	for id, l := range s.sessions {
		if now.Sub(l.tended) < l.ttl/8 {
			continue
		}
		l.tended = now
		for key, b := range l.backs {
			if now.Before(b.look) || len(all[id]) == most {
				continue
			}
			if all == nil {
				all = make(map[string][]string)
			}
			b.look = now.Add(lives * l.ttl)
			all[id] = append(all[id], key)
		}
	}
	return all
}

// fades reports whether nobody has asked for a record for so long that it is let go. From then
// on it is not refreshed.
func (s *sharing) fades(session, key string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sessions[session]
	if l == nil || l.backs[key] == nil {
		return false
	}
	b := l.backs[key]
	b.fading = b.fading || now.Sub(b.asked) >= lives*l.ttl
	return b.fading
}

// looked takes in how it went to look at a key that nobody asks for, and to let go what was there.
func (s *sharing) looked(session, key string, there bool, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.sessions[session]
	if l == nil || l.backs[key] == nil {
		return
	}
	b := l.backs[key]
	if err == nil {
		b.gone, b.stuck = true, time.Time{}
		return
	}
	b.look = now.Add(l.ttl / 4)
	if b.gone = b.gone && !there; b.gone {
		return
	}
	if b.stuck.IsZero() {
		b.stuck = now
	}
	l.full = l.full || now.Sub(b.stuck) >= l.ttl
	if now.Sub(b.stuck) >= mostStuck*l.ttl && !l.over {
		l.over = true
		l.why = fmt.Errorf("its session is left to expire, since what was left behind at %q cannot be removed: %w", key, err)
	}
}

// whyEnded returns why a session backs a record no longer.
func (s *sharing) whyEnded(session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.sessions[session]; l != nil && l.why != nil {
		return l.why
	}
	return errEnded
}
