package etcdkv

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// delete takes rec from its place in line, be it the first or not, unless another safe holds a
// record: then it returns that and [kv.ErrHeld]. It has a lease granted for the next create,
// if there is none that records share.
func (sf safe) delete(ctx context.Context, rec kv.Record, unless ...safe) (held kv.Record, err error) {
	if err := checkOwn(rec); err != nil {
		return kv.Record{}, err
	}
	withdraw := func() (err error) {
		held, err = sf.withdraw(ctx, rec, unless)
		return err
	}
	if sf.sharing.shared(rec.Lease) {
		if err = withdraw(); err == nil { // the next create finds a lease that records share, or has one granted
			sf.sharing.empty(sf.start)
		}
	} else {
		err = sf.spares.Provide(ctx, use{sf.start, rec.TTL}, func(ctx context.Context) (spare.Lease, error) { return sf.grant(ctx, rec.TTL) }, withdraw)
	}
	if err == nil || errors.Is(err, kv.ErrStale) {
		sf.sharing.forget(sf.start, rec)
	}
	return held, err
}

func (sf safe) withdraw(ctx context.Context, rec kv.Record, unless []safe) (held kv.Record, err error) {
	var vacant []clientv3.Cmp
	var looks []clientv3.Op
	for _, other := range unless {
		vacant, looks = append(vacant, other.vacant()), append(looks, other.first(1))
	}
	conditions := append(sf.holds(rec), sf.says(sf.sharing.written(sf.start, rec))...)
	for {
		resp, err := sf.txn(ctx).If(append(conditions, vacant...)...).Then(sf.deletes(sf.key(rec.Lease))...).Else(looks...).Commit()
		if err != nil || resp.Succeeded {
			return kv.Record{}, err
		}
		for _, other := range unless {
			held, err := other.held(ctx, other.line(resp))
			if errors.Is(err, rpctypes.ErrCompacted) { // before it could be read
				held, err = other.look(ctx)
			}
			if err == nil {
				err = fmt.Errorf("%q is not vacant: %w", other.base, kv.ErrHeld)
			}
			if !errors.Is(err, kv.ErrVacant) {
				return held, err
			}
		}
		now, err := sf.find(ctx, rec)
		if err != nil {
			return kv.Record{}, err
		}
		conditions = sf.holds(now.Record)
	}
}

// says is the condition that what lies at rec's key has rec's text, and its token, which in
// a line is no part of that.
func (sf safe) says(rec kv.Record) []clientv3.Cmp {
	key := sf.key(rec.Lease)
	text := key
	if sf.plain {
		text = sf.companion(key)
	}
	if sf.lined() {
		return []clientv3.Cmp{
			clientv3.Compare(clientv3.Value(text), "=", sf.encode(rec)),
			clientv3.Compare(clientv3.CreateRevision(key), "=", int64(rec.Token)),
		}
	}
	if rec.Token == rec.Revision { // the write that has brought it in did not know its token
		rec.Token = 0
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.Value(text), "=", sf.encode(rec))}
}
