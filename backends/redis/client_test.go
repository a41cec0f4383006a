package rediskv_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

// dial returns a client of a server, or of a cluster of several. It waits longer for a slow machine
// than a program would.
func dial(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	const timeout = 30 * time.Second
	return dialWith(t, redis.UniversalOptions{Addrs: addrs, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout})
}

func dialWith(t testing.TB, options redis.UniversalOptions) redis.UniversalClient {
	t.Helper()
	options.ContextTimeoutEnabled = true
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// requests counts the commands that clients send, but for those on connections of subscriptions and
// those by which a client introduces itself on a new connection: how many a pool opens depends on
// what happens at the same time.
type requests struct{ atomic.Int64 }

func (r *requests) note(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if name := cmd.Name(); name != "hello" && name != "client" {
			r.Add(1)
		}
	}
}

func (r *requests) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note(cmd)
		return next(ctx, cmd)
	}
}

func (r *requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.note(cmds...)
		return next(ctx, cmds)
	}
}

// count returns the client, from now on counted.
func (r *requests) count(client redis.UniversalClient) redis.UniversalClient {
	client.AddHook(r)
	return client
}

// An operator sets and deletes keys without a thought of what they are.
type operator struct {
	client redis.UniversalClient
	prefix string
}

func (o operator) put(t testing.TB, name, value string) {
	require.NoError(t, o.client.Set(context.Background(), o.key(name), value, 0).Err())
}

// key returns where a safe is, the names of which have no hash tags.
func (o operator) key(name string) string {
	if roster, key, ok := kv.MemberOf(name); ok {
		return "{" + o.prefix + roster + "}:election-roster:" + key
	}
	return o.prefix + name
}

func (o operator) remove(t testing.TB, name string) {
	require.NoError(t, o.client.Del(context.Background(), o.key(name)).Err())
}

func TestAStoreWithoutAClientIsRefusedAtOnce(t *testing.T) {
	store := rediskv.New(nil, nil)
	_, err := election.New(store, "jobs", nil)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "client is nil")
	_, err = store.Get(t.Context(), "jobs")
	require.ErrorIs(t, err, kv.ErrInvalid)
}
