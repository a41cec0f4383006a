package etcdkv

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// createShared creates a record with a lease that records share. Look finds out whether that
// is of use, and sign writes.
//
// The lease is known to live before the record has it, by a keep-alive that began after the
// call. The write may be carried out when nobody waits for it any more, and the lease would
// keep the record alive for ever. So a write of an unknown outcome closes the lease.
func (sf safe) createShared(ctx context.Context, ttl time.Duration, look func() error, sign func(spare.Lease) (kv.Record, error)) (kv.Record, error) {
	one, err := sf.shareLease(ctx, ttl, look)
	if err == nil && one.ID == "" {
		one, err = sf.shareNewLease(ctx, ttl)
	}
	if err != nil {
		return kv.Record{}, err
	}
	defer sf.sharing.exit(one.ID)
	rec, err := sign(one)
	switch {
	case err == nil:
		sf.sharing.joined(one.ID, sf.start, rec, time.Now())
	case !definite(err) && !rejected(err):
		sf.sharing.close(one.ID)
	}
	return rec, err
}

// shareLease returns a lease that takes one more record, and keeps it alive while it looks. If
// there is none, or nobody can say that it lives, it returns none.
func (sf safe) shareLease(ctx context.Context, ttl time.Duration, look func() error) (spare.Lease, error) {
	there := sf.sharing.enter(ttl, time.Now())
	one, err := spare.KeepAlive(ctx, there, sf.lives, look)
	if err != nil || one.ID == "" {
		sf.sharing.exit(there.ID)
		if err == nil {
			sf.sharing.doubt(there.ID)
		}
		return spare.Lease{}, err
	}
	return one, nil
}

// shareNewLease has a lease granted and returns it. If that is under way already, or done, it
// returns that lease and keeps it alive. If nobody can say that this one lives, it returns none.
func (sf safe) shareNewLease(ctx context.Context, ttl time.Duration) (fresh spare.Lease, err error) {
	if sf.sharing.begin(ttl) {
		fresh, err = sf.grant(ctx, ttl)
		sf.sharing.granted(ttl, fresh, err)
	} else {
		err = sf.sharing.wait(ctx, ttl)
	}
	if err != nil {
		return spare.Lease{}, err
	}
	one := sf.sharing.enter(ttl, time.Now())
	if one.ID == "" || one.ID == fresh.ID {
		return one, nil
	}
	if err := sf.lives(ctx, one.ID); err != nil {
		sf.sharing.exit(one.ID)
		return spare.Lease{}, ctx.Err()
	}
	return one, nil
}

// lives keeps a lease alive that records share. One that etcd denies takes no more of them.
func (sf safe) lives(ctx context.Context, lease string) error {
	_, err := sf.keepAlive(ctx, lease)
	if errors.Is(err, errDenied) {
		sf.sharing.close(lease)
	}
	return err
}

// rejected reports whether the server has said that it wrote nothing. One whose space ends with a
// write says that there is none, and has written. Of a lease that has ended, those that share it
// are to find out.
func rejected(err error) bool {
	told, ok := errors.AsType[rpctypes.EtcdError](err)
	return ok && refused(told) && !errors.Is(err, rpctypes.ErrNoSpace) && !errors.Is(err, rpctypes.ErrLeaseNotFound)
}
