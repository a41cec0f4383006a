package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	rec = kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: ttl}
	if _, err := s.encode(rec); err != nil {
		return kv.Record{}, err
	}
	var seen entry
	ready, err := s.spares.Take(ctx, use{key, ttl}, func(ctx context.Context, session string) error {
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
		if ready, err = s.grant(ctx, key, ttl); err != nil {
			return kv.Record{}, err
		}
	}
	rec.Lease = ready.ID
	return s.claim(ctx, key, seen, rec)
}

// claim locks the vacant safe. When its Txn was refused because somebody else
// had written meanwhile and the safe is vacant again, it tries again: a refused
// Txn had no effect.
//
// Nobody else knows the session. If it holds the key although the Txn was
// refused, something on the way has sent the Txn twice, and the first one was
// carried out.
func (s *Store) claim(ctx context.Context, key string, seen entry, rec kv.Record) (kv.Record, error) {
	for {
		rec.Token = seen.token()
		content, err := s.encode(rec)
		if err != nil {
			return kv.Record{}, s.giveBack(ctx, rec.Lease, err)
		}
		index, err := s.apply(ctx, key, slices.Concat(s.unchanged(key, seen), s.lock(key, content, rec.Lease)))
		var no *refusal
		switch {
		case err == nil:
			rec.Revision = index
			if rec.Token == 0 {
				rec.Token = index
			}
			return rec, nil
		case !errors.As(err, &no):
			// The key may be ours: the session stays until it is known.
			return kv.Record{}, err
		case no.lockDelay():
			held := fmt.Errorf("the lock-delay of its last session has not passed: %w", kv.ErrHeld)
			return kv.Record{}, s.giveBack(ctx, rec.Lease, held)
		}
		now, lookErr := s.look(ctx, key)
		switch {
		case lookErr != nil:
			return kv.Record{}, lookErr
		case now.session == rec.Lease && !now.rec.Foreign:
			return now.rec, nil
		case !now.vacant():
			return kv.Record{}, s.giveBack(ctx, rec.Lease, kv.ErrHeld)
		case now.version == seen.version:
			return kv.Record{}, s.giveBack(ctx, rec.Lease, err)
		}
		seen = now
	}
}
