package consulkv

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/member"
	"github.com/electkv/election/kv"
)

// isMember reports whether a name or a key is of a member's safe.
func isMember(name string) bool {
	_, _, ok := kv.MemberOf(name)
	return ok
}

// of returns the store that keeps a safe: members' values are never plain.
func (s *Store) of(name string) *Store {
	if s.members != nil && isMember(name) {
		return s.members
	}
	return s
}

// Members implements [kv.Roster]: one consistent read of all keys of the roster. Tokens are
// indexes, so they grow across all keys. The version is the index of the read.
//
// The keys of members that have died are vacant, and stay until another member enters: Create
// looks at those whose member's key begins as its own does, about a thirty-second part, and
// deletes the vacant ones. A member that leaves deletes its own.
func (s *Store) Members(ctx context.Context, name string, most int) (members []kv.Held, version uint64, err error) {
	start, err := s.membersStart(ctx, name)
	var pairs api.KVPairs
	if err == nil {
		pairs, version, err = s.list(ctx, start)
	}
	if err != nil {
		_, err = outcome(ctx, "list members of", name, kv.Record{}, err)
		return nil, 0, err
	}
	for _, pair := range pairs {
		safe := strings.TrimPrefix(pair.Key, s.opts.Prefix)
		if e := decode(pair); len(members) < most && !e.vacant() && member.Within(name, safe) {
			members = append(members, member.Listed(safe, e.rec))
		}
	}
	return members, version, nil
}

// membersStart returns how the keys of all members of a roster begin.
func (s *Store) membersStart(ctx context.Context, name string) (string, error) {
	if _, err := s.open(ctx, name); err != nil {
		return "", err
	}
	start := s.opts.Prefix + member.Prefix(name)
	return start, checkKey(start)
}

// list reads all keys that begin so.
func (s *Store) list(ctx context.Context, start string) (pairs api.KVPairs, index uint64, _ error) {
	query := &api.QueryOptions{RequireConsistent: true}
	err := s.conns.request(ctx, func(ctx context.Context) error {
		found, meta, err := s.client.KV().List(start, query.WithContext(ctx))
		if err == nil {
			pairs, index = found, meta.LastIndex
		}
		return err
	})
	return pairs, index, err
}

// clear deletes keys that dead members have left behind. It looks only at those that begin like
// the key that has just been written. Nothing depends on it.
func (s *Store) clear(ctx context.Context, key string) {
	roster, own, _ := kv.MemberOf(key)
	pairs, _, err := s.list(ctx, kv.MemberName(roster, own[:1]))
	if err != nil {
		return
	}
	var left []*api.KVPair
	for _, pair := range pairs {
		if isMember(pair.Key) && decode(pair).vacant() {
			left = append(left, pair)
		}
	}
	for some := range txnsOf(left, 2, func(pair *api.KVPair) string { return pair.Key }) {
		var ops []*api.KVTxnOp
		for _, pair := range some {
			ops = append(ops, at(pair.Key, pair.ModifyIndex), remove(pair.Key))
		}
		if _, err := s.transact(ctx, ops, &api.QueryOptions{}); err != nil {
			return // another has deleted them, or will
		}
	}
}

// shortAwait is the shortest time that AwaitMembers takes, unless a change has come before: the
// index of keys that are not there grows with those of others.
const shortAwait = 250 * time.Millisecond

// AwaitMembers implements [kv.Roster] with a blocking query for the names of the roster's keys.
// If there is no room for one, it returns after two seconds.
func (s *Store) AwaitMembers(ctx context.Context, name string, version uint64) error {
	start, err := s.membersStart(ctx, name)
	if err == nil {
		err = s.awaitChange(ctx, start, version)
	}
	_, err = outcome(ctx, "watch members of", name, kv.Record{}, err)
	return err
}

func (s *Store) awaitChange(ctx context.Context, start string, version uint64) error {
	long := s.conns.hold(ctx)
	if long == nil {
		return sleep(ctx, member.Poll)
	}
	began, wait := time.Now(), long.wait(s.opts.Backstop)
	bounded, cancel := context.WithTimeout(long.ctx, answerSlack+wait+wait/16)
	defer cancel()
	query := &api.QueryOptions{RequireConsistent: true, WaitIndex: max(version, 1), WaitTime: wait}
	traced, connected := traceConnection(bounded, s.conns.starved)
	_, _, err := s.client.KV().Keys(start, "", query.WithContext(traced))
	connected()
	needed, late := long.needed() || cutOff(ctx, err), bounded.Err() != nil && long.ctx.Err() == nil
	long.release()
	switch {
	case err == nil:
		return sleep(ctx, shortAwait-time.Since(began))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case needed:
		return sleep(ctx, member.Poll)
	case late:
		return fmt.Errorf("no answer within %v", answerSlack+wait+wait/16)
	}
	return s.conns.heed(ctx, err)
}
