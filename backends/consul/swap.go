package consulkv

import (
	"context"
	"errors"
	"fmt"

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
		return s.publish(ctx, key, now, next.Value)
	case next.Lease == "":
		return s.takeOver(ctx, key, now, next)
	case next.Lease == now.session:
		return s.signAnew(ctx, key, now, next)
	}
	return s.handOver(ctx, key, now, next)
}

// publish changes the value. The token is written out from now on.
func (s *Store) publish(ctx context.Context, key string, now entry, value string) (kv.Record, error) {
	rec := now.rec
	rec.Value, rec.Revision = value, now.revised()
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	return s.put(ctx, key, now, rec, lock(key, text, now.session))
}

// takeOver replaces the record by one with a session of its own.
func (s *Store) takeOver(ctx context.Context, key string, now entry, next kv.Record) (kv.Record, error) {
	ttl, err := s.grantable(next.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	rec := kv.Record{Signature: next.Signature, Value: next.Value, TTL: ttl}
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	rec.Lease, err = s.grant(ctx, key, ttl)
	if err != nil {
		return kv.Record{}, err
	}
	done, err := s.put(ctx, key, now, rec, unlock(key, now.session), lock(key, text, rec.Lease))
	var no *refusal
	if !errors.Is(err, kv.ErrStale) && !errors.As(err, &no) {
		return done, err
	}
	after, lookErr := s.look(ctx, key)
	switch {
	case lookErr != nil:
		return kv.Record{}, lookErr
	case after.session == rec.Lease: // as in claim
		return after.rec, nil
	}
	return kv.Record{}, s.giveBack(ctx, rec.Lease, err)
}

// signAnew replaces the record by one with another signature that the same
// session backs.
func (s *Store) signAnew(ctx context.Context, key string, now entry, next kv.Record) (kv.Record, error) {
	renewed, err := s.renewFor(ctx, next)
	if err != nil {
		return kv.Record{}, err
	}
	rec := kv.Record{
		Signature: next.Signature, Value: next.Value, TTL: renewed.ttl,
		Lease: next.Lease, Revision: now.revised(),
	}
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	return s.put(ctx, key, now, rec, lock(key, text, rec.Lease))
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
		Signature: next.Signature, Value: next.Value, TTL: renewed.ttl,
		Lease: next.Lease, Revision: now.rec.Revision + 1,
	}
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, err
	}
	var refused error
	for tried := uint64(0); ; {
		heir, err := s.look(ctx, renewed.home)
		switch {
		case err != nil:
			return kv.Record{}, err
		case heir.session != next.Lease || heir.rec.Foreign:
			return kv.Record{}, fmt.Errorf("the heir's own record, at %q, is gone: %w", renewed.home, kv.ErrStale)
		case heir.index == tried:
			return kv.Record{}, refused
		}
		ops := []*api.KVTxnOp{
			unlock(key, now.session),
			lock(key, text, next.Lease),
			unchanged(renewed.home, heir),
		}
		if !heir.shared {
			own := kv.Encode(heir.rec)
			if err := checkText(len(text) + len(own)); err != nil {
				return kv.Record{}, fmt.Errorf("together with the heir's own: %w", err)
			}
			ops = append(ops, lock(renewed.home, own, next.Lease))
		}
		done, err := s.put(ctx, key, now, rec, ops...)
		if _, refusing := errors.AsType[*refusal](err); !refusing {
			return done, err
		}
		tried, refused = heir.index, err
	}
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
// that holds it ends, and a [*refusal] if the reason lies elsewhere.
func (s *Store) put(ctx context.Context, key string, seen entry, rec kv.Record, ops ...*api.KVTxnOp) (kv.Record, error) {
	index, err := s.apply(ctx, key, append([]*api.KVTxnOp{unchanged(key, seen)}, ops...)...)
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
	case now.index == seen.index:
		return kv.Record{}, err
	}
	return kv.Record{}, kv.ErrStale
}
