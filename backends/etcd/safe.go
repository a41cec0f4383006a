package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// A safe is the range of keys at which the records of one name lie. It holds the
// one that was created first. In the layout OneKey the range is one key, and a
// line of one is first and last.
type safe struct {
	client     *clientv3.Client
	spares     *spare.Leases[use]
	sharing    *sharing
	base       string // the prefix and the name
	start, end string // end is empty if start is the only key
	plain      bool   // values stand alone, and records at companions
	observed   bool   // no record has a lease: observers judge its expiry
}

// lined reports whether there can be more than one key.
func (sf safe) lined() bool { return sf.end != "" }

// shares reports whether its records can share a lease: in a line a key has its lease in its
// name, and beside a plain value a guard knows the record by its lease.
func (sf safe) shares() bool { return !sf.lined() && !sf.plain && !sf.observed }

// key returns where a record lies that has the lease.
func (sf safe) key(lease string) string {
	if sf.lined() {
		return sf.start + lease
	}
	return sf.start
}

// companion returns where the record lies whose value is at key.
func (sf safe) companion(key string) string {
	return sf.base + companionSuffix + strings.TrimPrefix(key, sf.base)
}

// isCompanion reports whether a key is a companion, of this safe or another.
func (sf safe) isCompanion(key string) bool {
	if sf.lined() {
		key = key[:max(0, strings.LastIndex(key, "/"))]
	}
	return sf.plain && strings.HasSuffix(key, companionSuffix)
}

// has reports whether a key is of the range.
func (sf safe) has(key string) bool {
	return key == sf.start || sf.lined() && strings.HasPrefix(key, sf.start)
}

// vacant is the condition that the safe holds nothing and nobody is in line.
func (sf safe) vacant() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(sf.start), "=", 0).WithRange(sf.end)
}

// open is the condition that the safe is vacant, and that what lies at the
// companion of the key is as it was seen: a record may be put there.
func (sf safe) open(key string, seen line) []clientv3.Cmp {
	var revision int64
	if beside := seen.companions[sf.companion(key)]; beside != nil {
		revision = beside.ModRevision
	}
	return append(sf.beside(key, revision), sf.vacant())
}

// holds is the condition that now is as it was when it was read.
func (sf safe) holds(now kv.Record) []clientv3.Cmp {
	key, revision := sf.key(now.Lease), int64(now.Revision)
	return append(sf.beside(key, revision), clientv3.Compare(clientv3.ModRevision(key), "=", revision))
}

// holdsOnly is the condition that now is as it was when it was read, and that
// nobody else is in line. It compares every key of the range, and no two keys of
// a range are written by one Txn.
func (sf safe) holdsOnly(now kv.Record) []clientv3.Cmp {
	revision := int64(now.Revision)
	return append(sf.beside(sf.key(now.Lease), revision),
		clientv3.Compare(clientv3.ModRevision(sf.start), "=", revision).WithRange(sf.end))
}

// beside is the condition that a key's companion, if values stand alone, was last
// written at that revision, or is not there if it is zero.
func (sf safe) beside(key string, revision int64) []clientv3.Cmp {
	if !sf.plain {
		return nil
	}
	return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(sf.companion(key)), "=", revision)}
}

// gets reads what lies at a key, and its companion.
func (sf safe) gets(key string) []clientv3.Op {
	if sf.plain {
		return []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(sf.companion(key))}
	}
	return []clientv3.Op{clientv3.OpGet(key)}
}

// deletes removes what lies at a key, and its companion.
func (sf safe) deletes(key string) []clientv3.Op {
	if sf.plain {
		return []clientv3.Op{clientv3.OpDelete(key), clientv3.OpDelete(sf.companion(key))}
	}
	return []clientv3.Op{clientv3.OpDelete(key)}
}

// puts writes a record with its lease, and its companion.
func (sf safe) puts(rec kv.Record) ([]clientv3.Op, error) {
	id, err := leaseID(rec.Lease)
	if err != nil {
		return nil, err
	}
	key, text := sf.key(rec.Lease), sf.encode(rec)
	size := len(text)
	if sf.plain {
		size += len(rec.Value)
	}
	if size > longestText {
		return nil, fmt.Errorf("a record of %d bytes, with its value and note: want up to %d: %w", size, longestText, kv.ErrInvalid)
	}
	if !utf8.ValidString(rec.Note) {
		return nil, fmt.Errorf("note %.80q is no UTF-8: %w", rec.Note, kv.ErrInvalid)
	}
	lease := clientv3.WithLease(id)
	if sf.plain {
		return []clientv3.Op{clientv3.OpPut(key, rec.Value, lease), clientv3.OpPut(sf.companion(key), text, lease)}, nil
	}
	return []clientv3.Op{clientv3.OpPut(key, text, lease)}, nil
}

// put is the write of every record: one Txn that puts it, with its lease, if all
// conditions hold. If it takes the place of another record, that one's key goes
// in the same Txn, unless it is the same key. If a condition does not hold, done
// is false and the record is what lies at the new one's key.
func (sf safe) put(ctx context.Context, rec, former kv.Record, conditions ...clientv3.Cmp) (_ kv.Record, done bool, _ error) {
	ops, err := sf.puts(rec)
	if err != nil {
		return kv.Record{}, false, err
	}
	key := sf.key(rec.Lease)
	if old := sf.key(former.Lease); former.Signature != "" && old != key {
		ops = append(ops, sf.deletes(old)...)
	}
	resp, err := sf.txn(ctx).If(conditions...).Then(ops...).Else(sf.gets(key)...).Commit()
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		err = fmt.Errorf("%w: %w", kv.ErrInvalid, err)
	}
	if err != nil {
		return kv.Record{}, false, err
	}
	if resp.Succeeded {
		return stored(rec, resp.Header.Revision), true, nil
	}
	found := sf.line(resp)
	if pair := found.places[key]; pair != nil {
		return sf.decode(pair, found), false, nil
	}
	return kv.Record{}, false, nil // nothing lies there
}
