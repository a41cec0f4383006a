package etcdkv

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// stay starts the TTL of a place anew and returns it. If etcd denies the lease with
// which the place is there, it returns the place and an error that leaves the outcome
// open.
func (sf safe) stay(ctx context.Context, rec kv.Record) (standing, error) {
	if err := checkOwn(rec); err != nil {
		return standing{}, err
	}
	ttl, err := sf.keepAlive(ctx, rec.Lease)
	denied := errors.Is(err, errDenied)
	if err != nil && !denied {
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
	if denied {
		return now, errDoubt(rec.Lease)
	}
	now.TTL = ttl
	return now, nil
}

func (sf safe) refresh(ctx context.Context, rec kv.Record) (kv.Record, error) {
	now, err := sf.stay(ctx, rec)
	if now.Lease != "" && !now.first { // seen, whether or not it stays
		err = kv.ErrStale
	}
	return now.Record, err
}
