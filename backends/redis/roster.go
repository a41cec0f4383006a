package rediskv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/member"
	"github.com/electkv/election/kv"
)

const (
	// rosterEnding makes the key of a roster's set, and with ":" and a member's key after it
	// that of the member's record. No other record's key has it.
	rosterEnding = ":election-roster"

	// drawn is how many members Create draws from the set, to strike off those that are gone. Of
	// the members in the set, so at most about a fourth are.
	drawn = 4
)

// of returns the store that keeps a safe: members' values are never plain.
func (s *Store) of(name string) *Store {
	if s.members == nil {
		return s
	}
	if _, _, ok := kv.MemberOf(name); !ok {
		return s
	}
	return s.members
}

// memberPlace returns where a member's safe is kept: with all others of its roster in the slot of
// the election, with one counter for all.
func (s *Store) memberPlace(roster, key string) (place, error) {
	stem, err := s.rosterStem(roster)
	if err != nil {
		return place{}, err
	}
	record := stem + rosterEnding + ":" + key
	return place{
		record: record, text: record, counter: stem + rosterEnding + counterEnding, server: stem + serverEnding,
		channel: hintPrefix + record, set: stem + rosterEnding, member: key,
	}, nil
}

func (s *Store) rosterStem(roster string) (string, error) {
	key, err := s.key(roster)
	return neighbour(key), err
}

// enrol creates the record of a member. Some that were drawn before are looked at: that the set
// does not grow for ever depends on nobody who reads it.
func (s *Store) enrol(ctx context.Context, at place, args ...any) (any, error) {
	others, err := s.draw(ctx, at)
	if err != nil {
		return nil, err
	}
	keys := at.keys(at.counter, at.counter, at.set)
	if s.quarantine > 0 {
		keys[3] = at.server
	}
	args = append(args, at.member)
	for _, other := range others {
		keys, args = append(keys, at.set+":"+other), append(args, other)
	}
	reply, err := s.run(ctx, enrolScript, keys, args...)
	return reply, notASet(err, at.set)
}

// draw returns a few keys of members.
func (s *Store) draw(ctx context.Context, at place) ([]string, error) {
	others, err := await(ctx, func() ([]string, error) { return s.client.ZRandMember(ctx, at.set, drawn).Result() })
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil, nil // the script says what is there
	}
	s.reorient(ctx, err)
	return others, err
}

// notASet says what to do about a key that is not a roster's.
func notASet(err error, set string) error {
	if redis.HasErrorPrefix(err, "BADSET") {
		return fmt.Errorf("%w: another program's key is at %q, where the roster belongs: remove it, if no program needs it, or use another name", err, set)
	}
	return err
}

// Members implements [kv.Roster] with two scripts for 500 members: one reads their keys from
// the roster's set, the other their records. Each record is as it was when the second one ran.
// There is no version.
func (s *Store) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	stem, err := s.rosterStem(name)
	if err != nil {
		return nil, 0, err
	}
	var members []kv.Held
	set := stem + rosterEnding
	for from := "-"; ; {
		keys, err := s.page(ctx, set, from)
		var some []kv.Held
		if err == nil && len(keys) > 0 {
			some, err = s.records(ctx, name, set, keys)
		}
		if err := outcome("list members of", name, err, errors.New("the server's reply is empty")); err != nil {
			return nil, 0, err
		}
		members = append(members, some...)
		if len(keys) < member.Page || len(members) >= most {
			return members[:min(len(members), most)], 0, nil
		}
		from = "(" + keys[len(keys)-1]
	}
}

// page returns the keys of some members.
func (s *Store) page(ctx context.Context, set, from string) ([]string, error) {
	reply, err := s.run(ctx, pageScript, []string{set}, from, member.Page)
	if err != nil {
		return nil, notASet(err, set)
	}
	fields, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("the server's reply is %T, want members", reply)
	}
	keys := make([]string, len(fields))
	for i, field := range fields {
		if keys[i], ok = field.(string); !ok {
			return nil, fmt.Errorf("the server's reply has a %T, want members", field)
		}
	}
	return keys, nil
}

// records returns those of some members that are there.
func (s *Store) records(ctx context.Context, name, set string, keys []string) ([]kv.Held, error) {
	places := make([]string, len(keys))
	for i, key := range keys {
		places[i] = set + ":" + key
	}
	reply, err := s.run(ctx, membersScript, places)
	if err != nil {
		return nil, err
	}
	all, _ := reply.([]any)
	if len(all) != len(keys) {
		return nil, fmt.Errorf("the server's reply is %T, want a record for each key", reply)
	}
	var members []kv.Held
	for i, one := range all {
		fields, ok := one.([]any)
		if !ok {
			continue
		}
		if len(fields) != 3 {
			return nil, errors.New("the server's reply has other fields than type, text and time left")
		}
		safe := kv.MemberName(name, keys[i])
		rec, _, err := s.of(safe).seen(fields)
		if err != nil {
			return nil, err
		}
		members = append(members, member.Listed(safe, rec))
	}
	return members, nil
}

// AwaitMembers implements [kv.Roster]: it waits for two seconds, and asks nobody.
func (s *Store) AwaitMembers(ctx context.Context, name string, _ uint64) error {
	if _, err := s.rosterStem(name); err != nil {
		return err
	}
	timer := time.NewTimer(member.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("rediskv: watch members of %q: %w", name, context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}
