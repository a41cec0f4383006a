package etcdkv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// An undated context ends as another does, and tells no deadline: a request that carries one
// takes the server longer. When the context ends, the server is told so.
type undated struct{ context.Context }

// Deadline implements [context.Context].
func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// txn begins a Txn that writes.
func (sf safe) txn(ctx context.Context) clientv3.Txn { return sf.client.Txn(undated{ctx}) }
