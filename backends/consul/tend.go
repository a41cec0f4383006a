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
// left behind there. It takes no longer than within.
func (s *Store) tend(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for session, keys := range s.sharing.silents(time.Now(), txnOps) {
		locked, err := s.lockedBy(ctx, session, keys)
		if err != nil {
			locked = nil
			s.sharing.soon(session, time.Now(), keys...)
		}
		for _, key := range locked {
			if s.sharing.fades(session, key, time.Now()) && s.letGo(ctx, session, key) != nil {
				s.sharing.soon(session, time.Now(), key)
			}
		}
	}
}

// lockedBy returns those of the keys that the session may have locked.
func (s *Store) lockedBy(ctx context.Context, session string, keys []string) ([]string, error) {
	checks := make([]*api.KVTxnOp, len(keys))
	for i, key := range keys {
		checks[i] = &api.KVTxnOp{Verb: api.KVCheckSession, Key: key, Session: session}
	}
	_, err := s.transact(ctx, checks, &api.QueryOptions{RequireConsistent: true})
	no, refusing := errors.AsType[*refusal](err)
	if !refusing {
		return keys, err
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
// for a record.
func (s *Store) letGo(ctx context.Context, session, key string) error {
	for tried := (version{}); ; {
		now, err := s.look(ctx, key)
		if err != nil || now.session != session || now.rec.Foreign {
			return err
		}
		_, err = s.apply(ctx, key, slices.Concat(s.unchanged(key, now), s.unlock(key, session, now.rest())))
		if _, refused := errors.AsType[*refusal](err); !refused || now.version == tried {
			return err
		}
		tried = now.version
	}
}
