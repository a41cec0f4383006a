package etcdkv

import (
	"context"

	"github.com/electkv/election/kv"
)

// delete takes rec from its place in line, be it the first or not.
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
			If(sf.holds(now.Record)...).
			Then(sf.deletes(sf.key(now.Lease))...).
			Commit()
		if err != nil {
			return err
		}
		if resp.Succeeded {
			return sf.free(ctx, rec.Lease, resp.Header.GetRaftTerm())
		}
	}
}
