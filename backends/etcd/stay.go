package etcdkv

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// stay starts the TTL of a place anew and returns it. If etcd denies the lease with
// which the place is there, it returns the place and an error that leaves the outcome
// open.
//
// A record that may have moved to a shared lease is backed by one of two, and a move that is
// still on its way may change that. So both are kept alive, and its TTL is the shorter one's.
func (sf safe) stay(ctx context.Context, rec kv.Record) (standing, error) {
	if err := checkOwn(rec); err != nil {
		return standing{}, err
	}
	at := sf.sharing.asks(sf.start, rec, time.Now())
	leases := []string{rec.Lease}
	for _, lease := range []string{at.lease, at.old} {
		if lease != "" && lease != rec.Lease {
			leases = append(leases, lease)
		}
	}
	var least time.Duration
	denied := make(map[string]bool)
	for _, lease := range leases {
		sent := boottime.Read()
		ttl, err := sf.keepAlive(ctx, lease)
		if err == nil {
			sf.sharing.renewed(lease, sent)
		}
		switch {
		case err == nil && (least == 0 || ttl < least):
			least = ttl
		case errors.Is(err, errDenied):
			denied[lease] = true
		case err != nil:
			return standing{}, err
		}
	}
	now, err := sf.find(ctx, rec)
	if err != nil {
		return standing{}, err
	}
	stays := now.Lease == rec.Lease || at.old != "" && now.Lease == at.old
	switch {
	case at.lease != "" && now.Lease == at.lease:
		sf.sharing.moved(sf.start, rec, at.lease, at.from)
	case !stays && sf.sharing.asks(sf.start, rec, time.Now()) != at:
		return sf.stay(ctx, rec) // it has moved meanwhile
	case !stays:
		// Somebody may have put our text back without our lease. Then what we keep
		// alive is not the record.
		return standing{}, kv.ErrStale
	case at.lease == "":
	case now.Revision != at.from: // the move can come no more
		sf.sharing.stays(sf.start, rec, at.lease, at.from)
	case denied[at.lease] || at.leave:
		settled, err := sf.settle(ctx, now.Record, at, denied[at.lease])
		if err == nil {
			now.Record = settled
			if denied[at.lease] {
				sf.sharing.doubt(at.lease)
			}
		} else if denied[at.lease] {
			return standing{}, err
		}
	}
	if denied[now.Lease] {
		return now, errDoubt(now.Lease)
	}
	now.TTL = least
	return now, nil
}

// settle writes a record once more, as it is. A move that is on its way comes too late then. If
// nothing hangs on that, it is not to take long.
func (sf safe) settle(ctx context.Context, now kv.Record, at place, needed bool) (kv.Record, error) {
	if !needed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, aside/3)
		defer cancel()
	}
	rec, done, err := sf.put(ctx, now, kv.Record{}, sf.holds(now)...)
	switch {
	case err != nil:
		return kv.Record{}, err
	case !done:
		return kv.Record{}, errMoves
	}
	sf.sharing.stays(sf.start, now, at.lease, at.from)
	return rec, nil
}

// errMoves is the error of a refresh if the record was written at the same time.
var errMoves = errors.New("the record was written while it was refreshed")

func (sf safe) refresh(ctx context.Context, rec kv.Record) (kv.Record, error) {
	now, err := sf.stay(ctx, rec)
	if now.Lease != "" && !now.first { // seen, whether or not it stays
		err = kv.ErrStale
	}
	if errors.Is(err, kv.ErrStale) {
		sf.sharing.forget(sf.start, rec)
	}
	return now.Record, err
}
