package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

func (s *Store) swap(ctx context.Context, key string, old, next kv.Record) (kv.Record, error) {
	if err := checkOwn(old); err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(next); err != nil {
		return kv.Record{}, err
	}
	publishing := next.Signature == old.Signature
	if !publishing {
		if _, err := s.grantable(next.TTL); err != nil {
			return kv.Record{}, err
		}
	}
	now, err := s.find(ctx, key, old)
	switch {
	case err != nil:
		return kv.Record{}, err
	case now.rec.Revision != old.Revision:
		return kv.Record{}, kv.ErrStale
	case publishing:
		return s.publish(ctx, key, now, next)
	case next.Lease == "":
		return s.takeOver(ctx, key, now, next)
	case next.Lease == now.session:
		return kv.Record{}, errOneSession(now.session)
	}
	return s.handOver(ctx, key, now, next)
}

// publish changes value and note. The token is written out from now on. To write
// the same text again would not change the key: where both are there already,
// there is nothing to do.
func (s *Store) publish(ctx context.Context, key string, now entry, next kv.Record) (kv.Record, error) {
	if now.rec.Value == next.Value && now.rec.Note == next.Note {
		return now.rec, nil
	}
	rec := now.rec
	rec.Value, rec.Note, rec.Revision = next.Value, next.Note, now.revised(next.Note)
	content, err := s.encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	return s.put(ctx, key, now, rec, s.stir(key, now, content), s.lock(key, content, now.session))
}

// takeOver replaces the record by one with a session of its own.
func (s *Store) takeOver(ctx context.Context, key string, now entry, next kv.Record) (kv.Record, error) {
	ttl, err := s.grantable(next.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	rec := kv.Record{Signature: next.Signature, Value: next.Value, Note: next.Note, Token: now.token(), TTL: ttl}
	if rec.Note != "" {
		rec.Revision = now.revised(rec.Note)
	}
	content, err := s.encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	made, err := s.grant(ctx, key, ttl)
	if err != nil {
		return kv.Record{}, err
	}
	rec.Lease = made.ID
	done, err := s.put(ctx, key, now, rec, s.unlock(key, now.session, ""), s.lock(key, content, rec.Lease))
	var no *refusal
	if !errors.Is(err, kv.ErrStale) && !errors.As(err, &no) {
		return done, err
	}
	after, lookErr := s.look(ctx, key)
	switch {
	case lookErr != nil:
		return kv.Record{}, lookErr
	case after.session == rec.Lease && !after.rec.Foreign: // as in claim
		return after.rec, nil
	}
	return kv.Record{}, s.giveBack(ctx, rec.Lease, err)
}

// handOver replaces the record by one that the session of the heir's own record
// backs. From then on that session backs two records, and destroying it for one
// would end the other. Consul cannot be asked what a session holds; so the same
// Txn marks both texts, on condition that the heir's own record is still there
// as it was read. Whoever deletes one of them then finds the mark, since its
// delete depends on the text that it has read.
func (s *Store) handOver(ctx context.Context, key string, now entry, next kv.Record) (kv.Record, error) {
	renewed, err := s.renewFor(ctx, next)
	if err != nil {
		return kv.Record{}, err
	}
	rec := kv.Record{
		Signature: next.Signature, Value: next.Value, Note: next.Note, Token: now.token(), TTL: renewed.ttl,
		Lease: next.Lease, Revision: now.rec.Revision + 1,
	}
	content, err := s.encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	var refused error
	for tried := (version{}); ; {
		heir, err := s.look(ctx, renewed.home)
		switch {
		case err != nil:
			return kv.Record{}, err
		case heir.session != next.Lease || heir.rec.Foreign:
			return kv.Record{}, fmt.Errorf("the heir's own record, at %q, is gone: %w", renewed.home, kv.ErrStale)
		case heir.version == tried:
			return kv.Record{}, refused
		}
		mark, err := s.mark(renewed.home, heir, content)
		if err != nil {
			return kv.Record{}, err
		}
		done, err := s.put(ctx, key, now, rec, s.unlock(key, now.session, ""), s.lock(key, content, next.Lease), mark)
		if _, refusing := errors.AsType[*refusal](err); !refusing {
			return done, err
		}
		tried, refused = heir.version, err
	}
}

// mark makes sure that the text of the heir's own record has a mark, on condition
// that the record is still as it was read. What is handed over goes into the
// same Txn.
func (s *Store) mark(home string, heir entry, handed text) ([]*api.KVTxnOp, error) {
	ops := s.unchanged(home, heir)
	if heir.shared {
		return ops, nil
	}
	own, err := s.encode(heir.rec)
	if err == nil {
		err = checkText(own.size() + handed.size())
	}
	if err != nil {
		return nil, fmt.Errorf("together with the heir's own: %w", err)
	}
	return slices.Concat(ops, s.unlock(home, heir.session, ""), s.lock(home, own, heir.session)), nil
}

// renewFor renews the lease that is to back next.
func (s *Store) renewFor(ctx context.Context, next kv.Record) (renewal, error) {
	renewed, err := s.renew(ctx, next.Lease)
	switch {
	case err != nil:
		return renewal{}, err
	case renewed.home == "":
		return renewal{}, fmt.Errorf("session %s was not made by this package: %w", next.Lease, kv.ErrInvalid)
	case renewed.ttl < next.TTL:
		return renewal{}, fmt.Errorf("TTL %v: session %s has %v, which cannot be changed: %w",
			next.TTL, next.Lease, renewed.ttl, kv.ErrInvalid)
	}
	return renewed, nil
}

// put applies ops, which make rec of what the key held when it was seen. It
// returns [kv.ErrStale] if the key has changed, as it does too when the session
// that holds it ends, and a *refusal if the reason lies elsewhere.
func (s *Store) put(ctx context.Context, key string, seen entry, rec kv.Record, ops ...[]*api.KVTxnOp) (kv.Record, error) {
	index, err := s.apply(ctx, key, slices.Concat(s.unchanged(key, seen), slices.Concat(ops...)))
	if err == nil {
		if rec.Token == 0 {
			rec.Token = index
		}
		if rec.Revision == 0 {
			rec.Revision = index
		}
		return rec, nil
	}
	if _, refusing := errors.AsType[*refusal](err); !refusing {
		return kv.Record{}, err
	}
	now, lookErr := s.look(ctx, key)
	switch {
	case lookErr != nil:
		return kv.Record{}, lookErr
	case now.version == seen.version:
		return kv.Record{}, err
	}
	return kv.Record{}, kv.ErrStale
}
