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

// put is the write of every record: one Txn that puts it, with its lease, if
// cond holds. If cond does not hold, done is false and the record is what the
// safe holds instead.
func (sf safe) put(ctx context.Context, cond clientv3.Cmp, rec kv.Record) (_ kv.Record, done bool, _ error) {
	text, err := encode(rec)
	if err != nil {
		return kv.Record{}, false, err
	}
	id, err := leaseID(rec.Lease)
	if err != nil {
		return kv.Record{}, false, err
	}
	resp, err := sf.client.Txn(ctx).
		If(cond).
		Then(clientv3.OpPut(sf.key, text, clientv3.WithLease(id))).
		Else(clientv3.OpGet(sf.key)).
		Commit()
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return kv.Record{}, false, fmt.Errorf("%w: %w", kv.ErrInvalid, err)
	case err != nil:
		return kv.Record{}, false, err
	case resp.Succeeded:
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
	return sf.sign(ctx, clientv3.Compare(clientv3.CreateRevision(sf.key), "=", 0), rec, kv.ErrHeld)
}

// sign puts a new signature, with a lease granted for it, if cond holds, and
// returns refused if it does not.
func (sf safe) sign(ctx context.Context, cond clientv3.Cmp, rec kv.Record, refused error) (kv.Record, error) {
	lease, ttl, err := sf.grant(ctx, rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	now, done, err := sf.put(ctx, cond, kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: ttl, Lease: lease})
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
	unchanged := clientv3.Compare(clientv3.ModRevision(sf.key), "=", int64(now.Revision))
	switch {
	case publishing:
		now.Value = next.Value
		return sf.replace(ctx, unchanged, now)
	case next.Lease != "":
		return sf.handOver(ctx, unchanged, next)
	default:
		return sf.sign(ctx, unchanged, next, kv.ErrStale)
	}
}

// handOver puts the heir's signature, with the heir's lease.
func (sf safe) handOver(ctx context.Context, unchanged clientv3.Cmp, next kv.Record) (kv.Record, error) {
	ttl, err := sf.keepAlive(ctx, next.Lease)
	if err != nil {
		return kv.Record{}, err
	}
	if ttl < next.TTL {
		return kv.Record{}, fmt.Errorf("TTL %v: want up to %v, which the heir's lease has: %w", next.TTL, ttl, kv.ErrInvalid)
	}
	return sf.replace(ctx, unchanged, kv.Record{Signature: next.Signature, Value: next.Value, TTL: ttl, Lease: next.Lease})
}

// replace puts a record whose lease is there already.
func (sf safe) replace(ctx context.Context, unchanged clientv3.Cmp, rec kv.Record) (kv.Record, error) {
	now, done, err := sf.put(ctx, unchanged, rec)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) || err == nil && !done {
		return kv.Record{}, kv.ErrStale
	}
	return now, err
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
			If(clientv3.Compare(clientv3.ModRevision(sf.key), "=", int64(now.Revision))).
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
