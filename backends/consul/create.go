package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

func (s *Store) create(ctx context.Context, key string, rec kv.Record) (kv.Record, error) {
	if err := checkNew(rec); err != nil {
		return kv.Record{}, err
	}
	ttl, err := s.grantable(rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	share := rec.Shared
	rec = kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: ttl}
	if _, err := s.encode(rec); err != nil {
		return kv.Record{}, err
	}
	if share && s.sharing.ofUse(ttl, key, boottime.Read()) {
		created, done, err := s.createShared(ctx, key, rec)
		if done {
			return created, err
		}
	}
	return s.createAlone(ctx, key, rec)
}

// createAlone creates a record with a session of its own.
func (s *Store) createAlone(ctx context.Context, key string, rec kv.Record) (kv.Record, error) {
	var seen entry
	ready, err := s.spares.Take(ctx, use{key, rec.TTL}, func(ctx context.Context, session string) error {
		_, err := s.renew(ctx, session)
		return err
	}, func() (err error) {
		seen, err = s.look(ctx, key)
		return err
	})
	if err != nil {
		return kv.Record{}, err
	}
	if !seen.vacant() {
		return kv.Record{}, kv.ErrHeld
	}
	if ready.ID == "" {
		if ready, err = s.grant(ctx, key, rec.TTL); err != nil {
			return kv.Record{}, err
		}
	}
	rec.Lease = ready.ID
	created, unused, err := s.claim(ctx, key, seen, rec)
	if unused {
		err = s.giveBack(ctx, ready.ID, err)
	}
	return created, err
}

// claim locks the vacant safe. When its Txn was refused because somebody else
// had written meanwhile and the safe is vacant again, it tries again: a refused
// Txn had no effect. Unused means that the session does not lock the safe, and never will.
//
// The session has locked this safe for nobody else. If it holds the key although the Txn was
// refused, something on the way has sent the Txn twice, and the first one was
// carried out.
func (s *Store) claim(ctx context.Context, key string, seen entry, rec kv.Record) (_ kv.Record, unused bool, _ error) {
	for {
		rec.Token = seen.token()
		content, err := s.encode(rec)
		if err != nil {
			return kv.Record{}, true, err
		}
		index, err := s.apply(ctx, key, slices.Concat(s.unchanged(key, seen), s.lock(key, content, rec.Lease)))
		var no *refusal
		switch {
		case err == nil:
			rec.Revision = index
			if rec.Token == 0 {
				rec.Token = index
			}
			return rec, false, nil
		case !errors.As(err, &no):
			// The key may be ours: the session stays until it is known.
			return kv.Record{}, false, err
		case no.lockDelay():
			return kv.Record{}, true, fmt.Errorf("the lock-delay of its last session has not passed: %w", kv.ErrHeld)
		}
		now, lookErr := s.look(ctx, key)
		switch {
		case lookErr != nil:
			return kv.Record{}, false, lookErr
		case now.session == rec.Lease && now.rec.Signature == rec.Signature:
			return now.rec, false, nil
		case !now.vacant():
			return kv.Record{}, true, kv.ErrHeld
		case now.version == seen.version:
			return kv.Record{}, true, err
		}
		seen = now
	}
}
