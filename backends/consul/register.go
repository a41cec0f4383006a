package consulkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

const (
	// observedFlags are those of observed records, and say so. They are not the
	// flags of locks, so that api.Lock and "consul lock" refuse the key, although
	// no session holds it, and a Store takes it for somebody else's.
	observedFlags = 0x6f62736572766564 // "observed"

	// shortestObserved is the shortest TTL that observers judge.
	shortestObserved = 500 * time.Millisecond
	// longestObserved is the longest that the text form holds.
	longestObserved = time.Duration(math.MaxInt64 - math.MaxInt64%int64(time.Millisecond))
)

// A register is an [observer.Register]: a safe is one key without a session, and its
// revision is the key's ModifyIndex, an index of the Raft log.
type register struct{ cells *Store }

var _ observer.Register = register{}

func newRegister(client *api.Client, opts *Options) register {
	cells := New(client, opts)
	cells.observed = true
	return register{cells}
}

// Get implements [observer.Register]: one consistent read.
func (r register) Get(ctx context.Context, name string) (kv.Record, error) {
	return r.cells.Get(ctx, name)
}

// Put implements [observer.Register]: one Txn that sets the key if its ModifyIndex
// is old's, or if there is no key.
//
// The token is the ModifyIndex of the write that brought the signature in, which the
// texts of all later writes have in them.
func (r register) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	key, err := r.cells.open(ctx, name)
	if err == nil {
		next, err = r.cells.exchange(ctx, key, old, next)
	}
	return outcome(ctx, "put", name, next, err)
}

// Remove implements [observer.Register]: one Txn that deletes the key if its
// ModifyIndex is old's.
func (r register) Remove(ctx context.Context, name string, old kv.Record) error {
	key, err := r.cells.open(ctx, name)
	if err == nil {
		err = checkOwn(old)
	}
	if err == nil {
		_, err = r.cells.applyAt(ctx, key, old, remove(key))
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
	err := checkObserved(ttl)
	if r.cells.client == nil {
		err = errNoClient
	}
	if err != nil {
		return fmt.Errorf("consulkv: %w", err)
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

// exchange puts next in old's place, or where nothing is. The text has old's
// revision in it: Consul takes a write that changes nothing for none, and a refresh
// that left the ModifyIndex as it is would not count.
func (s *Store) exchange(ctx context.Context, key string, old, next kv.Record) (kv.Record, error) {
	if err := checkObserved(next.TTL); err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(next); err != nil {
		return kv.Record{}, err
	}
	if !utf8.ValidString(next.Note) {
		return kv.Record{}, fmt.Errorf("note %.80q is no UTF-8: %w", next.Note, kv.ErrInvalid)
	}
	rec := kv.Record{Signature: next.Signature, Value: next.Value, Note: next.Note, TTL: wholeMilliseconds(next.TTL)}
	if old != (kv.Record{}) {
		if err := checkOwn(old); err != nil {
			return kv.Record{}, err
		}
		if next.Signature == old.Signature {
			rec.Token = old.Token
		}
	}
	rec.Revision = old.Revision
	content := kv.EncodeObserved(rec)
	if err := checkText(len(content)); err != nil {
		return kv.Record{}, err
	}
	set := &api.KVTxnOp{Verb: api.KVSet, Key: key, Value: []byte(content), Flags: observedFlags}
	index, err := s.applyAt(ctx, key, old, set)
	if err != nil {
		return kv.Record{}, err
	}
	rec.Revision = index
	if rec.Token == 0 {
		rec.Token = index
	}
	return rec, nil
}

// applyAt carries an operation out if the cell still holds old at its revision, or
// is empty if old is the zero record. What was there when it was refused may be
// gone already, so nothing can be learned from a look: that the condition alone was
// refused says that it did not hold. A token that may not write has the write
// refused too.
func (s *Store) applyAt(ctx context.Context, key string, old kv.Record, op *api.KVTxnOp) (uint64, error) {
	index, err := s.apply(ctx, key, []*api.KVTxnOp{at(key, old.Revision), op})
	if no, refusing := errors.AsType[*refusal](err); refusing && no.onlyFirst() {
		return 0, kv.ErrStale
	}
	return index, err
}

// decodeObserved returns what a cell holds. Anything but a record of which observers
// judge whether it has expired is foreign: a key that somebody holds with a session,
// and a lock that is open, since its lock-delay may be for an owner that still trusts
// it.
func decodeObserved(pair *api.KVPair) entry {
	switch {
	case pair == nil:
		return entry{}
	case pair.Flags != observedFlags || pair.Session != "":
		return foreign(pair)
	}
	rec := kv.DecodeObserved(string(pair.Value))
	if rec.Foreign {
		return foreign(pair)
	}
	rec.Revision = pair.ModifyIndex
	if rec.Token == 0 {
		rec.Token = pair.ModifyIndex
	}
	return entry{rec: rec, version: version{key: pair.ModifyIndex}}
}

// wholeMilliseconds returns the TTL as the text form has it, rounded up.
func wholeMilliseconds(ttl time.Duration) time.Duration {
	if part := ttl % time.Millisecond; part > 0 {
		ttl += time.Millisecond - part
	}
	return ttl
}
