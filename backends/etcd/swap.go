package etcdkv

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

func (sf safe) swap(ctx context.Context, old, next kv.Record) (kv.Record, error) {
	if err := checkOwn(old); err != nil {
		return kv.Record{}, err
	}
	if next.Signature == old.Signature {
		return sf.publish(ctx, old, next)
	}
	if err := checkNew(next); err != nil {
		return kv.Record{}, err
	}
	now, err := sf.findSole(ctx, old)
	if err != nil {
		return kv.Record{}, err
	}
	var rec kv.Record
	if next.Lease == "" {
		rec, err = sf.sign(ctx, spare.Lease{}, next, now, kv.ErrStale, func(string) []clientv3.Cmp { return sf.holdsOnly(now) })
	} else {
		rec, err = sf.handOver(ctx, now, next)
	}
	if errors.Is(err, errDenied) {
		err = sf.unbacked(ctx, now, next.Lease)
	}
	if err == nil {
		sf.sharing.forget(sf.start, old)
	}
	return rec, err
}

// findHeld returns old as the safe holds it, if that is still so.
func (sf safe) findHeld(ctx context.Context, old kv.Record) (standing, error) {
	now, err := sf.find(ctx, old)
	if err == nil && (!now.first || now.Revision != old.Revision) {
		err = kv.ErrStale
	}
	return now, err
}

// findSole returns old as the safe holds it, if that is still so and nobody is in
// line whom a hand-over would pass by.
func (sf safe) findSole(ctx context.Context, old kv.Record) (kv.Record, error) {
	now, err := sf.findHeld(ctx, old)
	if err == nil && !now.alone {
		err = fmt.Errorf("others are in line, and a hand-over would jump it: %w", kv.ErrStale)
	}
	return now.Record, err
}

func (sf safe) publish(ctx context.Context, old, next kv.Record) (kv.Record, error) {
	now, err := sf.findHeld(ctx, old)
	if err != nil {
		return kv.Record{}, err
	}
	rec := now.Record
	rec.Value, rec.Note = next.Value, next.Note
	rec, done, err := sf.put(ctx, rec, kv.Record{}, sf.holds(now.Record)...)
	if err == nil && !done {
		err = kv.ErrStale
	}
	return rec, err
}

// handOver puts the heir's signature, with the heir's lease.
//
// The heir may give up its record at the same moment, and revoke the lease when
// it sees no key with it. So the Txn requires that some key has the lease: then
// the heir either comes first, and the Txn is refused, or sees the safe's key.
// A lease that has once been without keys gets none again.
//
// A lease that backs the record already is not the heir's own.
//
// It returns errDenied if etcd says that the heir has no lease, or no record with it.
func (sf safe) handOver(ctx context.Context, now, heir kv.Record) (kv.Record, error) {
	if heir.Lease == now.Lease {
		return kv.Record{}, errOneLease(heir.Lease)
	}
	ttl, err := sf.keepAlive(ctx, heir.Lease)
	if err != nil {
		return kv.Record{}, err
	}
	if ttl < heir.TTL {
		return kv.Record{}, fmt.Errorf("TTL %v: want up to %v, which the heir's lease has: %w", heir.TTL, ttl, kv.ErrInvalid)
	}
	next := kv.Record{Signature: heir.Signature, Value: heir.Value, Note: heir.Note, TTL: ttl, Lease: heir.Lease}
	for {
		backed, err := sf.backed(ctx, heir.Lease)
		if err != nil {
			return kv.Record{}, err
		}
		got, done, err := sf.put(ctx, next, now, append(sf.holdsOnly(now), backed)...)
		if err != nil || done {
			return got, err
		}
		if _, err := sf.findSole(ctx, now); err != nil {
			return kv.Record{}, err
		}
		// It was the other key that changed. The lease may have a third.
	}
}

// unbacked returns why nothing is handed over to an heir whose lease etcd denies. At
// which key the heir's record is, nothing tells, so etcd is asked again: whoever leads
// it when a linearizable read is answered has caught up with all that was granted.
func (sf safe) unbacked(ctx context.Context, now kv.Record, lease string) error {
	if _, err := sf.findSole(ctx, now); err != nil {
		return err
	}
	keys, err := sf.keys(ctx, lease)
	if err == nil && len(keys) == 0 {
		err = kv.ErrStale
	}
	if err == nil {
		err = errDoubt(lease)
	}
	return err
}

func errOneLease(lease string) error {
	return fmt.Errorf("lease %s has another signature in this safe: want another lease: %w", lease, kv.ErrInvalid)
}
