package etcdkv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// HandOver implements [kv.HandOver] with one Txn, and reads nothing before. The Txn
// compares the ModRevision of both safes' keys, which no two states of a store have
// in common, and their leases, and puts the record with the heir's lease. That the
// heir's key is there with its lease keeps the lease from being revoked meanwhile: an
// heir that gives up comes first, and the Txn is refused, or sees another key with it.
//
// In a line, old has to be alone in its line, and the heir first in its own.
func (s *Store) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	var rec kv.Record
	sf, err := s.open(ctx, name)
	if err == nil {
		var own safe
		if own, err = s.safe(place); err == nil {
			rec, err = sf.handOverFrom(ctx, old, own, heir, note)
		}
	}
	return outcome(ctx, "hand over", name, rec, err)
}

// handOverFrom puts the heir, which has a safe of its own, in the place of old.
func (sf safe) handOverFrom(ctx context.Context, old kv.Record, own safe, heir kv.Record, note string) (kv.Record, error) {
	if err := checkHeir(old, heir); err != nil {
		return kv.Record{}, err
	}
	if old.Revision == 0 || heir.Revision == 0 { // which is that of a missing key
		return kv.Record{}, kv.ErrStale
	}
	conditions := sf.holdsOnly(old)
	conditions = append(conditions, own.leads(heir)...)
	for _, rec := range []struct {
		kv.Record
		in safe
	}{{old, sf}, {heir, own}} {
		id, err := leaseID(rec.Lease)
		if err != nil {
			return kv.Record{}, err
		}
		conditions = append(conditions, clientv3.Compare(clientv3.LeaseValue(rec.in.key(rec.Lease)), "=", id))
	}
	next := kv.Record{Signature: heir.Signature, Value: heir.Value, Note: note, TTL: heir.TTL, Lease: heir.Lease}
	rec, done, err := sf.put(ctx, next, old, conditions...)
	if err == nil && !done {
		err = kv.ErrStale
	}
	if err == nil {
		sf.sharing.forget(sf.start, old)
	}
	return rec, err
}

// leads is the condition that rec is as it was read, and first in line: no key of the
// range is older than its own.
func (sf safe) leads(rec kv.Record) []clientv3.Cmp {
	conditions := sf.holds(rec)
	if sf.lined() {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(sf.start), ">", int64(rec.Token)-1).WithRange(sf.end))
	}
	return conditions
}

// checkHeir refuses a hand-over that can never be made.
func checkHeir(old, heir kv.Record) error {
	if err := checkOwn(old); err != nil {
		return err
	}
	if err := checkNew(heir); err != nil {
		return err
	}
	switch {
	case heir.Signature == old.Signature:
		return fmt.Errorf("the heir has the signature of the record that it is to replace: want another: %w", kv.ErrInvalid)
	case heir.Lease == "":
		return fmt.Errorf("the heir's record has no lease: want one that has: %w", kv.ErrInvalid)
	case heir.Lease == old.Lease:
		return errOneLease(heir.Lease)
	}
	return nil
}
