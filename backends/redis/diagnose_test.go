package rediskv_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
)

// advice returns which settings have advice, and requires that no setting of a
// node is told twice.
func (b *bench) advice(store interface {
	Diagnose(ctx context.Context) ([]rediskv.Finding, error)
}) map[string]bool {
	b.Helper()
	findings, err := store.Diagnose(b.ctx)
	require.NoError(b, err)
	bad, told := make(map[string]bool), make(map[rediskv.Finding]bool)
	for _, f := range findings {
		b.Logf("%+v", f)
		bad[f.Setting] = bad[f.Setting] || f.Advice != ""
		f.Value, f.Advice = "", ""
		require.False(b, told[f], "%+v", f)
		told[f] = true
	}
	return bad
}

func TestADiagnosisFindsNothingWrongWithASafeServer(t *testing.T) {
	server := testenv.StartRedis(t, "--appendfsync", "always", "--notify-keyspace-events", "KEA")
	b := newBench(t, server.Addr())
	for setting, wrong := range b.advice(b.store) {
		require.False(t, wrong, setting)
	}
}

func TestADiagnosisFindsWhatBreaksExclusion(t *testing.T) {
	server := testenv.StartRedis(t, "--appendonly", "no", "--maxmemory-policy", "volatile-lru")
	b := newBench(t, server.Addr())
	client := b.client(&redis.Options{Addr: server.Addr()})
	bad := b.advice(rediskv.New(client, nil))
	for _, setting := range []string{"maxmemory_policy", "aof_enabled", "notify-keyspace-events", "ContextTimeoutEnabled"} {
		require.True(t, bad[setting], setting)
	}
	require.False(t, bad["role"])
	bad = b.advice(rediskv.NewObserved(client, nil))
	require.False(t, bad["maxmemory_policy"], "a record without an expiry is not evicted")
	require.True(t, bad["aof_enabled"])

	require.NoError(t, b.other.Do(b.ctx, "replicaof", "127.0.0.1", "1").Err())
	require.NoError(t, b.other.Do(b.ctx, "acl", "setuser", "default", "-config").Err())
	bad = b.advice(b.store)
	require.True(t, bad["role"])
	require.True(t, bad["appendfsync"], "what cannot be read is said to be unknown")
}

func TestADiagnosisOfAClusterLooksAtEachPrimary(t *testing.T) {
	b := newBench(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...)
	require.True(t, b.advice(b.store)["cluster_enabled"])
	findings, err := b.store.Diagnose(b.ctx)
	require.NoError(t, err)
	nodes := make(map[string]bool)
	for _, f := range findings {
		if f.Setting == "redis_version" {
			nodes[f.Node] = true
		}
	}
	require.Len(t, nodes, 3)
}
