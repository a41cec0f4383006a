package etcdkv

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

const (
	// shortestObserved is the shortest TTL that observers judge.
	shortestObserved = 500 * time.Millisecond
	// longestObserved is the longest that the text form holds.
	longestObserved = time.Duration(math.MaxInt64 - math.MaxInt64%int64(time.Millisecond))
)

// A register is an [observer.Register]: a safe is one key without a lease, and its
// revision is the key's ModRevision, which no two writes to a store have in common.
type register struct{ cells *Store }

var _ observer.Register = register{}

func newRegister(client *clientv3.Client, opts *Options) register {
	cells := New(client, opts)
	cells.observed = true
	return register{cells}
}

// Get implements [observer.Register]: one linearizable read.
func (r register) Get(ctx context.Context, name string) (kv.Record, error) {
	return r.cells.Get(ctx, name)
}

// Put implements [observer.Register]: one Txn that puts the record if the key's
// ModRevision is old's, or if there is no key.
//
// The token is the ModRevision of the write that brought the signature in, which the
// texts of all later writes have in them.
func (r register) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	sf, err := r.cells.open(ctx, name)
	if err == nil {
		next, err = sf.exchange(ctx, old, next)
	}
	return outcome(ctx, "put", name, next, err)
}

// Remove implements [observer.Register]: one Txn that deletes the key if its
// ModRevision is old's.
func (r register) Remove(ctx context.Context, name string, old kv.Record) error {
	sf, err := r.cells.open(ctx, name)
	if err == nil {
		err = sf.remove(ctx, old)
	}
	_, err = outcome(ctx, "remove", name, kv.Record{}, err)
	return err
}

// Watch implements [observer.Register] as a [Store] does its own. Each refresh is a
// change of revision.
func (r register) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return r.cells.Watch(ctx, name)
}

// Check implements [observer.Register].
func (r register) Check(ttl time.Duration) error {
	err := r.cells.unfit()
	if err == nil {
		err = checkObserved(ttl)
	}
	if err != nil {
		return fmt.Errorf("etcdkv: %w", err)
	}
	return nil
}

func checkObserved(ttl time.Duration) error {
	if ttl < shortestObserved || ttl > longestObserved {
		return fmt.Errorf("TTL %v: want one from %v to %v where observers judge expiry: %w",
			ttl, shortestObserved, longestObserved, kv.ErrInvalid)
	}
	return nil
}

// exchange puts next in old's place, or where nothing is.
func (sf safe) exchange(ctx context.Context, old, next kv.Record) (kv.Record, error) {
	if err := checkObserved(next.TTL); err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(next); err != nil {
		return kv.Record{}, err
	}
	if !utf8.ValidString(next.Signature) {
		return kv.Record{}, fmt.Errorf("signature %.80q is no UTF-8: %w", next.Signature, kv.ErrInvalid)
	}
	rec := kv.Record{Signature: next.Signature, Value: next.Value, Note: next.Note, TTL: wholeMilliseconds(next.TTL)}
	condition := sf.vacant()
	if old != (kv.Record{}) {
		if err := checkOwn(old); err != nil {
			return kv.Record{}, err
		}
		condition = sf.at(old)
		if next.Signature == old.Signature {
			rec.Token = old.Token
		}
	}
	// Whatever there is now, be it a record with next's signature: some other call
	// has put it there, or this one's Txn, which the client has sent twice. In
	// either case it may be older than this call.
	rec, done, err := sf.put(ctx, rec, kv.Record{}, condition)
	if err == nil && !done {
		err = kv.ErrStale
	}
	return rec, err
}

// remove deletes old.
func (sf safe) remove(ctx context.Context, old kv.Record) error {
	if err := checkOwn(old); err != nil {
		return err
	}
	resp, err := sf.client.Txn(ctx).If(sf.at(old)).Then(sf.deletes(sf.start)...).Commit()
	if err == nil && !resp.Succeeded {
		err = kv.ErrStale
	}
	return err
}

// at is the condition that the cell holds old at its revision.
func (sf safe) at(old kv.Record) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(sf.start), "=", int64(old.Revision))
}

// wholeMilliseconds returns the TTL as the text form has it, rounded up.
func wholeMilliseconds(ttl time.Duration) time.Duration {
	if part := ttl % time.Millisecond; part > 0 {
		ttl += time.Millisecond - part
	}
	return ttl
}
