package consulkv

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// refreshOne refreshes one record by itself.
func (s *Store) refreshOne(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	key, err := s.open(ctx, name)
	if err == nil {
		rec, err = s.refresh(ctx, key, rec)
	}
	return outcome(ctx, "refresh", name, rec, err)
}

func (s *Store) refresh(ctx context.Context, key string, rec kv.Record) (kv.Record, error) {
	if err := checkOwn(rec); err != nil {
		return kv.Record{}, err
	}
	asked := time.Now()
	found, err := s.find(ctx, key, rec)
	if err != nil {
		if errors.Is(err, kv.ErrStale) {
			s.seen.forget(key)
		}
		return kv.Record{}, err
	}
	s.seen.note(key, found)
	if s.sharing.asks(found.session, key, rec.Signature, boottime.Read()) == ended {
		return kv.Record{}, errEnded
	}
	// Should the leader that renews be one that does not know yet that it was
	// replaced: its successor came after the read, and has started all sessions
	// anew.
	renewed, err := s.renewShared(ctx, found.session)
	if err == nil && !s.sharing.keeps(found.session, key, rec.Signature) {
		err = s.sharing.whyEnded(found.session)
	}
	if err != nil {
		return kv.Record{}, err
	}
	found.rec.TTL = renewed.ttl
	s.confirm(key, found.version, asked)
	return found.rec, nil
}

// delete opens the safe, and has a session made for the next create.
func (s *Store) delete(ctx context.Context, key string, rec kv.Record) error {
	if err := checkOwn(rec); err != nil {
		return err
	}
	if isMember(key) { // the key is not used again
		return s.withdraw(ctx, key, rec)
	}
	return s.spares.Provide(ctx, use{key, rec.TTL},
		func(ctx context.Context) (spare.Lease, error) { return s.grant(ctx, key, rec.TTL) },
		func() error { return s.withdraw(ctx, key, rec) })
}

func (s *Store) withdraw(ctx context.Context, key string, rec kv.Record) error {
	for tried := (version{}); ; {
		now, err := s.find(ctx, key, rec)
		if err != nil {
			return err
		}
		if isMember(key) {
			_, err = s.transact(ctx, append(s.unchanged(key, now), remove(key)), &api.QueryOptions{})
		} else {
			_, err = s.apply(ctx, key, slices.Concat(s.unchanged(key, now), s.unlock(key, now.session, now.rest())))
		}
		if _, refused := errors.AsType[*refusal](err); !refused || now.version == tried {
			return err
		}
		tried = now.version
	}
}
