package etcdkv

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// createShared creates a record with a lease that records share. Look finds out whether that
// is of use, and sign writes.
//
// The lease is known to live before the record has it, by a keep-alive that was answered. If that
// was sent before the call, the record's TTL is so much shorter, in its text too: whoever finds it
// trusts it from the start of the call. The write may be carried out when nobody waits for it any
// more, and the lease would keep the record alive for ever. So a write of an unknown outcome closes
// the lease.
func (sf safe) createShared(ctx context.Context, ttl time.Duration, look func() error, sign func(spare.Lease) (kv.Record, error)) (kv.Record, error) {
	if sf.sharing.refill(sf.start) {
		look = func() error { return nil }
	}
	one, err := sf.shareLease(ctx, ttl, look)
	if err != nil {
		return kv.Record{}, err
	}
	if one.ID != "" {
		rec, err := sf.createWith(one, sign)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it has ended since it was kept alive, with all that had it
			return rec, err
		}
	}
	if one, err = sf.shareNewLease(ctx, ttl); err != nil {
		return kv.Record{}, err
	}
	return sf.createWith(one, sign)
}

// createWith creates a record with a lease that has a place for it.
func (sf safe) createWith(one spare.Lease, sign func(spare.Lease) (kv.Record, error)) (kv.Record, error) {
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

// shareLease returns a lease that takes one more record, and looks. If the lease was not kept alive
// lately, it does that meanwhile. If there is none, or nobody can say that it lives, it returns none.
func (sf safe) shareLease(ctx context.Context, ttl time.Duration, look func() error) (spare.Lease, error) {
	there := sf.sharing.enter(ttl, time.Now())
	one := sf.sharing.fresh(there, boottime.Read())
	var err error
	if one.ID != "" {
		err = look()
	} else {
		one, err = spare.KeepAlive(ctx, there, sf.lives, look)
	}
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
		sent := boottime.Read()
		fresh, err = sf.grant(ctx, ttl)
		sf.sharing.granted(ttl, fresh, err)
		sf.sharing.renewed(fresh.ID, sent)
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
	sent := boottime.Read()
	_, err := sf.keepAlive(ctx, lease)
	switch {
	case err == nil:
		sf.sharing.renewed(lease, sent)
	case errors.Is(err, errDenied):
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
