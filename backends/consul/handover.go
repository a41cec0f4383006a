package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// HandOver implements [kv.HandOver]: a read of both safes, and one Txn on condition
// that their keys' ModifyIndexes are still those read. It unlocks the key for the old
// session and locks it with the heir's, which is not renewed, and marks the heir's own
// record as Swap does.
//
// It tries again if only a mark has changed in between: that of a hand-over to the same
// heir in another safe.
func (s *Store) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	var rec kv.Record
	key, err := s.open(ctx, name)
	if err == nil {
		var home string
		if home, err = s.open(ctx, place); err == nil {
			rec, err = s.handOverFrom(ctx, key, old, home, heir, note)
		}
	}
	return outcome(ctx, "hand over", name, rec, err)
}

// handOverFrom puts the heir, whose own record is at home, in the place of old.
func (s *Store) handOverFrom(ctx context.Context, key string, old kv.Record, home string, heir kv.Record, note string) (kv.Record, error) {
	if err := checkHeir(old, heir); err != nil {
		return kv.Record{}, err
	}
	if s.sharing.shared(heir.Lease) {
		return kv.Record{}, fmt.Errorf("session %s is one that records share: want the heir's own: %w", heir.Lease, kv.ErrInvalid)
	}
	var refused error
	for tried := [2]version{}; ; {
		now, theirs, err := s.lookAtPair(ctx, key, home)
		seen := [2]version{now.version, theirs.version}
		switch {
		case err != nil:
			return kv.Record{}, err
		case !now.holds(old) || !theirs.holds(heir) || theirs.session != heir.Lease:
			return kv.Record{}, kv.ErrStale
		case theirs.session == now.session:
			return kv.Record{}, errOneSession(now.session)
		case seen == tried:
			return kv.Record{}, refused
		}
		rec := theirs.rec
		rec.Note, rec.Token, rec.Revision = note, now.token(), now.rec.Revision+1
		index, err := s.replace(ctx, key, now, home, theirs, rec)
		if err == nil && rec.Token == 0 {
			rec.Token = index
		}
		if _, refusing := errors.AsType[*refusal](err); !refusing {
			return rec, err
		}
		tried, refused = seen, err
	}
}

// replace puts rec, which the heir's session backs, if nothing has changed in either
// safe.
func (s *Store) replace(ctx context.Context, key string, now entry, home string, heir entry, rec kv.Record) (uint64, error) {
	content, err := s.encode(rec)
	if err != nil {
		return 0, err
	}
	mark, err := s.mark(home, heir, content)
	if err != nil {
		return 0, err
	}
	return s.apply(ctx, key, slices.Concat(s.unchanged(key, now),
		s.unlock(key, now.session, ""), s.lock(key, content, heir.session), mark))
}

// holds reports whether the safe holds rec at its revision.
func (e entry) holds(rec kv.Record) bool {
	return e.rec.Owns(rec) && e.rec.Revision == rec.Revision
}

// lookAtPair reads two safes at one moment, linearizably.
func (s *Store) lookAtPair(ctx context.Context, first, second string) (a, b entry, _ error) {
	var gets []*api.KVTxnOp
	for _, key := range []string{first, second} {
		gets = append(gets, &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key})
		if s.opts.Plain {
			gets = append(gets, &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: companion(key)})
		}
	}
	found, err := s.transact(ctx, gets, &api.QueryOptions{RequireConsistent: true})
	if err != nil {
		return entry{}, entry{}, err
	}
	if len(found) != len(gets) {
		return entry{}, entry{}, fmt.Errorf("permission denied: the client needs key:read for %q and for %q", first, second)
	}
	for i, pair := range found {
		if pair.ModifyIndex == 0 {
			found[i] = nil // there is no such key
		}
	}
	if s.opts.Plain {
		return decodeBoth(found[0], found[1]), decodeBoth(found[2], found[3]), nil
	}
	return s.decode(found[0]), s.decode(found[1]), nil
}

// checkHeir refuses a hand-over that can never be made.
func checkHeir(old, heir kv.Record) error {
	if err := checkOwn(old); err != nil {
		return err
	}
	if err := checkOwn(heir); err != nil {
		return err
	}
	switch {
	case heir.Signature == old.Signature:
		return fmt.Errorf("the heir has the signature of the record that it is to replace: want another: %w", kv.ErrInvalid)
	case heir.Lease == "":
		return fmt.Errorf("the heir's record has no session: want one that has: %w", kv.ErrInvalid)
	case heir.Lease == old.Lease:
		return errOneSession(heir.Lease)
	}
	return nil
}

// errOneSession is why a session backs no second signature in a safe: Guard, which
// knows an owner by its session, would not tell the two apart.
func errOneSession(session string) error {
	return fmt.Errorf("session %s has another signature in this safe: want another session: %w", session, kv.ErrInvalid)
}
