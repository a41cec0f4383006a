package rediskv_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestASingleServerKeepsTheContract(t *testing.T) {
	keepsTheContract(t, testenv.Redis(t))
}

func TestAClusterKeepsTheContract(t *testing.T) {
	keepsTheContract(t, startCluster(t)...)
}

// keepsTheContract runs the suite on a server, or on a cluster of several.
func keepsTheContract(t *testing.T, addrs ...string) {
	var sent requests
	open := func(t testing.TB) redis.UniversalClient {
		client := dial(t, addrs...)
		client.AddHook(&sent)
		return client
	}
	hands := dial(t, addrs...)
	kvtest.Run(t, kvtest.Backend{
		Open: func(t testing.TB) kv.Store { return rediskv.New(open(t), &rediskv.Options{Prefix: "kvtest/"}) },
		Put: func(t testing.TB, name, value string) {
			require.NoError(t, hands.Set(context.Background(), "kvtest/"+name, value, 0).Err())
		},
		Remove: func(t testing.TB, name string) {
			require.NoError(t, hands.Del(context.Background(), "kvtest/"+name).Err())
		},
		Requests: sent.Load,
	})
}

// dial returns a client of a server, or of a cluster of several.
func dial(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// requests counts the commands that clients send, but for those on connections
// of subscriptions.
type requests struct{ atomic.Int64 }

func (r *requests) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.Add(1)
		return next(ctx, cmd)
	}
}

func (r *requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
