package etcdkv

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// A safe is one key.
type safe struct {
	client *clientv3.Client
	key    string
}

// look reads the key, linearizably. It returns the record, or [kv.ErrVacant],
// and with either the revision of the whole store at that moment.
func (sf safe) look(ctx context.Context) (kv.Record, int64, error) {
	resp, err := sf.client.Get(ctx, sf.key)
	if err != nil {
		return kv.Record{}, 0, err
	}
	if len(resp.Kvs) == 0 {
		return kv.Record{}, resp.Header.Revision, kv.ErrVacant
	}
	return decode(resp.Kvs[0]), resp.Header.Revision, nil
}

// find returns what the safe holds if that is rec, perhaps with another value,
// or else [kv.ErrStale].
func (sf safe) find(ctx context.Context, rec kv.Record) (kv.Record, error) {
	now, _, err := sf.look(ctx)
	if errors.Is(err, kv.ErrVacant) || err == nil && !now.Owns(rec) {
		return kv.Record{}, kv.ErrStale
	}
	return now, err
}

// put is the write of every record: one Txn that puts it, with its lease, if all
// conditions hold. If one does not, done is false and the record is what the
// safe holds.
func (sf safe) put(ctx context.Context, rec kv.Record, conditions ...clientv3.Cmp) (_ kv.Record, done bool, _ error) {
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, false, err
	}
	id, err := leaseID(rec.Lease)
	if err != nil {
		return kv.Record{}, false, err
	}
	resp, err := sf.client.Txn(ctx).
		If(conditions...).
		Then(clientv3.OpPut(sf.key, text, clientv3.WithLease(id))).
		Else(clientv3.OpGet(sf.key)).
		Commit()
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		err = fmt.Errorf("%w: %w", kv.ErrInvalid, err)
	}
	if err != nil {
		return kv.Record{}, false, err
	}
	if resp.Succeeded {
		return stored(rec, resp.Header.Revision), true, nil
	}
	for _, pair := range resp.Responses[0].GetResponseRange().Kvs {
		return decode(pair), false, nil
	}
	return kv.Record{}, false, nil // vacant
}

func (sf safe) create(ctx context.Context, rec kv.Record) (kv.Record, error) {
	if err := checkNew(rec); err != nil {
		return kv.Record{}, err
	}
	// Candidates come in crowds, and to be refused costs the cluster three
	// writes (grant, Txn, revoke). Most can be spared them by a read.
	_, _, err := sf.look(ctx)
	if err == nil {
		return kv.Record{}, kv.ErrHeld
	}
	if !errors.Is(err, kv.ErrVacant) {
		return kv.Record{}, err
	}
	vacant := clientv3.Compare(clientv3.CreateRevision(sf.key), "=", 0)
	return sf.sign(ctx, rec, vacant, kv.ErrHeld)
}

// sign puts a new signature, with a lease granted for it, if the condition
// holds, and returns refused if it does not.
func (sf safe) sign(ctx context.Context, rec kv.Record, condition clientv3.Cmp, refused error) (kv.Record, error) {
	lease, ttl, err := sf.grant(ctx, rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	now, done, err := sf.put(ctx, kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: ttl, Lease: lease}, condition)
	// The client sends a Txn again after an answer of the kind "cancelled" that
	// was not its own context's. If the safe has the lease that nobody else
	// knows, then the first sending was carried out.
	if err == nil && !done && now.Lease != lease {
		err = refused
	}
	if !definite(err) {
		return now, err
	}
	if late := sf.revoke(ctx, lease); late != nil {
		err = fmt.Errorf("%w; its lease fades by itself: %w", err, late)
	}
	return kv.Record{}, err
}

func (sf safe) swap(ctx context.Context, old, next kv.Record) (kv.Record, error) {
	if err := checkOwn(old); err != nil {
		return kv.Record{}, err
	}
	publishing := next.Signature == old.Signature
	if !publishing {
		if err := checkNew(next); err != nil {
			return kv.Record{}, err
		}
	}
	now, err := sf.find(ctx, old)
	if err != nil {
		return kv.Record{}, err
	}
	if now.Revision != old.Revision {
		return kv.Record{}, kv.ErrStale
	}
	switch {
	case publishing:
		return sf.publish(ctx, now, next.Value)
	case next.Lease != "":
		return sf.handOver(ctx, now, next)
	default:
		return sf.sign(ctx, next, sf.holds(now), kv.ErrStale)
	}
}

// holds is the condition that the safe is as it was when now was read.
func (sf safe) holds(now kv.Record) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(sf.key), "=", int64(now.Revision))
}

func (sf safe) publish(ctx context.Context, now kv.Record, value string) (kv.Record, error) {
	next := now
	next.Value = value
	next, done, err := sf.put(ctx, next, sf.holds(now))
	if err == nil && !done {
		err = kv.ErrStale
	}
	return next, err
}

// handOver puts the heir's signature, with the heir's lease.
//
// The heir may give up its record at the same moment, and revoke the lease when
// it sees no key with it. So the Txn requires that some key has the lease: then
// the heir either comes first, and the Txn is refused, or sees the safe's key.
// A lease that has once been without keys gets none again.
func (sf safe) handOver(ctx context.Context, now, heir kv.Record) (kv.Record, error) {
	ttl, err := sf.keepAlive(ctx, heir.Lease)
	if err != nil {
		return kv.Record{}, err
	}
	if ttl < heir.TTL {
		return kv.Record{}, fmt.Errorf("TTL %v: want up to %v, which the heir's lease has: %w", heir.TTL, ttl, kv.ErrInvalid)
	}
	next := kv.Record{Signature: heir.Signature, Value: heir.Value, TTL: ttl, Lease: heir.Lease}
	for {
		backed, err := sf.backed(ctx, heir.Lease)
		if err != nil {
			return kv.Record{}, err
		}
		got, done, err := sf.put(ctx, next, sf.holds(now), backed)
		if err != nil || done {
			return got, err
		}
		if got.Revision != now.Revision {
			return kv.Record{}, kv.ErrStale
		}
		// It was the other key that changed. The lease may have a third.
	}
}

func (sf safe) refresh(ctx context.Context, rec kv.Record) (kv.Record, error) {
	if err := checkOwn(rec); err != nil {
		return kv.Record{}, err
	}
	ttl, err := sf.keepAlive(ctx, rec.Lease)
	if err != nil {
		return kv.Record{}, err
	}
	now, err := sf.find(ctx, rec)
	if err != nil {
		return kv.Record{}, err
	}
	// Somebody may have put our text back without our lease. Then what we keep
	// alive is not the record.
	if now.Lease != rec.Lease {
		return kv.Record{}, kv.ErrStale
	}
	now.TTL = ttl
	return now, nil
}

func (sf safe) delete(ctx context.Context, rec kv.Record) error {
	if err := checkOwn(rec); err != nil {
		return err
	}
	for {
		now, err := sf.find(ctx, rec)
		if err != nil {
			return err
		}
		resp, err := sf.client.Txn(ctx).
			If(sf.holds(now)).
			Then(clientv3.OpDelete(sf.key)).
			Commit()
		if err != nil {
			return err
		}
		if resp.Succeeded {
			return sf.free(ctx, rec.Lease)
		}
	}
}
