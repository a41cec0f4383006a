package etcdkv

import (
	"context"

	"github.com/electkv/election/kv"
)

// stay starts the TTL of a place anew and returns it.
func (sf safe) stay(ctx context.Context, rec kv.Record) (standing, error) {
	if err := checkOwn(rec); err != nil {
		return standing{}, err
	}
	ttl, err := sf.keepAlive(ctx, rec.Lease)
	if err != nil {
		return standing{}, err
	}
	now, err := sf.find(ctx, rec)
	if err != nil {
		return standing{}, err
	}
	// Somebody may have put our text back without our lease. Then what we keep
	// alive is not the record.
	if now.Lease != rec.Lease {
		return standing{}, kv.ErrStale
	}
	now.TTL = ttl
	return now, nil
}

func (sf safe) refresh(ctx context.Context, rec kv.Record) (kv.Record, error) {
	now, err := sf.stay(ctx, rec)
	if err == nil && !now.first {
		err = kv.ErrStale
	}
	return now.Record, err
}
