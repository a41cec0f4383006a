package etcdkv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// A Queue is a [Store] that keeps lines ([kv.Queue]): candidates and old clients, which use
// package go.etcd.io/etcd/client/v3/concurrency or etcdctl, are served in the order in which
// they came. A candidate that waits sends heartbeats for its place. Its keys are those of
// [Claim]. Use [NewQueue] to make one.
type Queue struct{ Store }

var _ kv.Queue = (*Queue)(nil)

// NewQueue returns a store with lines that uses the client, and never closes it. Options may
// be nil.
func NewQueue(client *clientv3.Client, opts *Options) *Queue {
	q := &Queue{}
	q.lines = true
	q.init(client, opts)
	return q
}

// Join implements [kv.Queue]: a read that looks for the signature, a LeaseGrant, then
// one Txn that puts the place with that lease if its key does not exist.
//
// A lost reply leaves a lease behind, with the place or without it. Join finds
// the place again; a place that comes later than that fades by itself.
func (q *Queue) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sf, err := q.open(ctx, name)
	if err == nil {
		rec, err = sf.join(ctx, rec)
	}
	return outcome(ctx, "join", name, rec, err)
}

// Stay implements [kv.Queue]: a LeaseKeepAlive, then one linearizable read of the place
// and of the first in line, which decides as in Refresh.
func (q *Queue) Stay(ctx context.Context, name string, rec kv.Record) (place kv.Record, leads bool, err error) {
	var now standing
	sf, err := q.open(ctx, name)
	if err == nil {
		now, err = sf.stay(ctx, rec)
	}
	place, err = outcome(ctx, "stay", name, now.Record, err)
	return place, err == nil && now.first, err
}
