package etcdkv_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/kv"
)

const (
	// patience is what a busy machine may need for anything.
	patience = 30 * time.Second
	// ample is a TTL that no test outlasts.
	ample = 10 * time.Minute
	// prefix keeps the tests' keys apart from everything else in a server.
	prefix = "etcdkv-test/"
)

// A count is how many messages a client has sent, those on streams included.
type count struct{ atomic.Int64 }

func (c *count) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *count) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *count) HandleConn(context.Context, stats.ConnStats)                       {}
func (c *count) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutPayload); ok {
		c.Add(1)
	}
}

// dial returns a client of the servers at addrs that counts what it sends, if
// sent is not nil.
func dial(t testing.TB, sent *count, addrs ...string) *clientv3.Client {
	t.Helper()
	return dialWith(t, sent, clientv3.Config{Endpoints: addrs})
}

func dialWith(t testing.TB, sent *count, config clientv3.Config) *clientv3.Client {
	t.Helper()
	config.Logger = zap.NewNop()
	if sent != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithStatsHandler(sent))
	}
	client, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// open returns a store with a client of its own.
func open(t testing.TB, sent *count, addrs ...string) *etcdkv.Store {
	t.Helper()
	return etcdkv.New(dial(t, sent, addrs...), &etcdkv.Options{Prefix: prefix})
}

// put writes as a program does that knows nothing of elections.
func put(t testing.TB, client *clientv3.Client, name, value string, opts ...clientv3.OpOption) {
	t.Helper()
	_, err := client.Put(within(t, patience), prefix+name, value, opts...)
	require.NoError(t, err)
}

// remove deletes a key as an operator does.
func remove(t testing.TB, client *clientv3.Client, name string) {
	t.Helper()
	_, err := client.Delete(within(t, patience), prefix+name)
	require.NoError(t, err)
}

// within returns a context that ends after d, or with the test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// signed returns what a new campaign writes.
func signed(value string) kv.Record {
	return kv.Record{Signature: rand.Text(), Value: value, TTL: ample}
}

// held puts a record into a new safe.
func held(t testing.TB, store kv.Store) (name string, rec kv.Record) {
	t.Helper()
	name = rand.Text()
	rec, err := store.Create(within(t, patience), name, signed("held"))
	require.NoError(t, err)
	return name, rec
}

func newStore(t testing.TB, prefix string, addrs ...string) *etcdkv.Store {
	t.Helper()
	return etcdkv.New(dial(t, nil, addrs...), &etcdkv.Options{Prefix: prefix})
}
