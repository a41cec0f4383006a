package memkv

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/electkv/election/internal/member"
	"github.com/electkv/election/kv"
)

// A stir wakes those that wait for a change of a roster.
type stir struct{ happened chan struct{} }

// now wakes them. A nil stir has none. The caller holds the store's mutex.
func (s *stir) now() {
	if s != nil {
		close(s.happened)
		s.happened = make(chan struct{})
	}
}

// rosterOf returns the stir of the roster that a safe's name belongs to, if it is a member's.
// The caller holds the mutex.
func (s *Store) rosterOf(name string) *stir {
	roster, _, ok := kv.MemberOf(name)
	if !ok {
		return nil
	}
	return s.stirOf(roster)
}

func (s *Store) stirOf(roster string) *stir {
	st := s.stirs[roster]
	if st == nil {
		st = &stir{make(chan struct{})}
		s.stirs[roster] = st
	}
	return st
}

// Members implements [kv.Roster].
func (s *Store) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	switch {
	case name == "":
		return nil, 0, errNoName
	case ctx.Err() != nil:
		return nil, 0, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	members, version, _ := s.members(name)
	return members[:min(most, len(members))], version, nil
}

// members returns a roster, what stands for it, and when the first of its records expires. It
// forgets safes that nobody needs. The caller holds the mutex.
func (s *Store) members(roster string) (members []kv.Held, version uint64, expires time.Time) {
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(s.safes)) {
		if !member.Within(roster, name) {
			continue
		}
		sf := s.at(name)
		if len(sf.line) == 0 {
			if len(sf.topics) == 0 {
				delete(s.safes, name)
			}
			continue
		}
		first := sf.line[0]
		members = append(members, member.Listed(name, first.rec))
		sum.Write(binary.BigEndian.AppendUint64(nil, first.rec.Revision))
		if !first.expires.IsZero() && (expires.IsZero() || first.expires.Before(expires)) {
			expires = first.expires
		}
	}
	return members, sum.Sum64(), expires
}

// AwaitMembers implements [kv.Roster].
func (s *Store) AwaitMembers(ctx context.Context, name string, version uint64) error {
	if name == "" {
		return errNoName
	}
	for ctx.Err() == nil {
		s.mu.Lock()
		_, now, expires := s.members(name)
		happened := s.stirOf(name).happened
		s.mu.Unlock()
		if now != version {
			return nil
		}
		wait := time.Duration(math.MaxInt64)
		if !expires.IsZero() {
			wait = time.Until(expires)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-happened:
		case <-timer.C:
		}
		timer.Stop()
	}
	return context.Cause(ctx)
}
