package consulkv

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
)

// aside is how long a batch waits at most for what is done beside it.
const aside = time.Second

// tend looks at what nobody refreshes any more of the shared sessions, and lets go what was
// left behind there. It takes no longer than within, and than a quarter of the time that ctx has
// left: somebody waits who has a good answer.
func (s *Store) tend(ctx context.Context, within time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)/4)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for session, silent := range s.sharing.silents(time.Now(), txnOps) {
		for keys := range txnsOf(silent, 1, func(key string) string { return key }) {
			s.tendTo(ctx, session, keys)
		}
	}
}

// tendTo looks at some keys of a session.
func (s *Store) tendTo(ctx context.Context, session string, keys []string) {
	locked, err := s.lockedBy(ctx, session, keys)
	for _, key := range keys {
		there, err := false, err
		if slices.Contains(locked, key) {
			if !s.sharing.fades(session, key, time.Now()) {
				continue // somebody has asked meanwhile
			}
			there, err = s.letGo(ctx, session, key)
		}
		s.sharing.looked(session, key, there, err, time.Now())
	}
}

// lockedBy returns those of the keys that the session may have locked. They fit into one Txn.
func (s *Store) lockedBy(ctx context.Context, session string, keys []string) ([]string, error) {
	checks := make([]*api.KVTxnOp, len(keys))
	for i, key := range keys {
		checks[i] = &api.KVTxnOp{Verb: api.KVCheckSession, Key: key, Session: session}
	}
	_, err := s.transact(ctx, checks, &api.QueryOptions{RequireConsistent: true})
	no, refusing := errors.AsType[*refusal](err)
	switch {
	case err == nil || refusing && no.denied():
		return keys, nil
	case !refusing:
		return nil, err
	}
	var locked []string
	named := no.ops()
	for i, key := range keys {
		if !named[i] {
			locked = append(locked, key)
		}
	}
	return locked, nil
}

// letGo opens a safe as Consul does when a session expires, if the session still has it locked
// for a record. It returns whether the session was seen to have it locked.
func (s *Store) letGo(ctx context.Context, session, key string) (there bool, _ error) {
	for tried := (version{}); ; {
		now, err := s.look(ctx, key)
		switch {
		case err != nil || now.session != session:
			return there, err
		case now.rec.Foreign:
			return true, s.unlockOther(ctx, session, key)
		}
		there = true
		_, err = s.apply(ctx, key, slices.Concat(s.unchanged(key, now), s.unlock(key, session, now.rest())))
		if _, refused := errors.AsType[*refusal](err); !refused || now.version == tried {
			return there, err
		}
		tried = now.version
	}
}

// unlockOther opens a key that the session has locked, and in which somebody else has written, as
// Consul does when a session expires: what was written stays. Without the flags of a lock it is left
// alone: to others it is held either way. A companion is in nobody's way.
func (s *Store) unlockOther(ctx context.Context, session, key string) error {
	found, err := s.transact(ctx, []*api.KVTxnOp{{Verb: api.KVGetOrEmpty, Key: key}}, &api.QueryOptions{RequireConsistent: true})
	if err != nil || len(found) != 1 || found[0].Session != session || found[0].Flags != api.LockFlagValue {
		return err
	}
	_, err = s.apply(ctx, key, []*api.KVTxnOp{
		at(key, found[0].ModifyIndex),
		{Verb: api.KVUnlock, Key: key, Value: found[0].Value, Flags: found[0].Flags, Session: session},
	})
	return err
}
