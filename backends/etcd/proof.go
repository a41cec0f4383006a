package etcdkv

import (
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// lately is how long ago a lease was kept alive at most if a record is created with it as it is.
// In whole seconds, what is left of its TTL is the TTL.
const lately = 900 * time.Millisecond

// renewed takes in that a lease was kept alive by a request that was sent then.
func (s *sharing) renewed(lease string, sent boottime.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[lease]; l != nil && sent.Mono.After(l.proved.Mono) {
		l.proved = sent
	}
}

// fresh returns a lease with the TTL that is left of it for certain, in whole milliseconds, if it
// was kept alive lately, or else none.
func (s *sharing) fresh(one spare.Lease, now boottime.Instant) spare.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[one.ID]
	if l == nil {
		return spare.Lease{}
	}
	age := now.Since(l.proved)
	if age < 0 || age > min(lately, l.ttl/8) {
		return spare.Lease{}
	}
	one.TTL = (l.ttl - age).Truncate(time.Millisecond)
	return one
}

// whole returns the TTL of the lease of which that is left.
func whole(left time.Duration) time.Duration {
	seconds, err := wholeSeconds(left)
	if err != nil {
		return left
	}
	return time.Duration(seconds) * time.Second
}

// written returns a record of the list with the TTL that its text has, as far as is known. A
// refresh grants it more than what was left of its lease when it was created.
func (s *sharing) written(key string, rec kv.Record) kv.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[rec.Lease]; l.has(key, rec) {
		rec.TTL = l.backs[key].ttl
	}
	return rec
}

// mostEmptied is how many keys are remembered that this store has emptied.
const mostEmptied = 64

// empty takes in that this store has deleted the record at a key. The next create of another
// need not look whether there is one: that costs the cluster a write if somebody was faster.
func (s *sharing) empty(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old := range s.emptied {
		if len(s.emptied) >= mostEmptied {
			delete(s.emptied, old)
		}
	}
	if s.emptied == nil {
		s.emptied = make(map[string]struct{})
	}
	s.emptied[key] = struct{}{}
}

// refill reports whether a key was emptied by this store, and forgets it.
func (s *sharing) refill(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, emptied := s.emptied[key]
	delete(s.emptied, key)
	return emptied
}
