//go:build unix

package testenv_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestRedisClusterDividesTheKeys(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedisCluster(t, 3, 0)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: r.Addrs(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	owners := make(map[*testenv.Server]bool)
	for _, key := range []string{"b", "c", "a"} { // slots 3300, 7365, 15495
		require.NoError(t, client.Set(within(t), key, "v", 0).Err())
		got, err := getRedis(within(t), r.Owner(key).Addr(), key)
		require.NoError(t, err)
		require.Equal(t, "v", got)
		owners[r.Owner(key)] = true
	}
	require.Len(t, owners, 3)
	require.Empty(t, r.Replicas("a"))
}

func TestRedisClusterReplacesAPrimaryThatIsGone(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedisCluster(t, 3, 1)
	require.Len(t, r.Nodes, 6)
	first := r.Owner("k")
	require.Len(t, r.Replicas("k"), 1)
	second := r.Replicas("k")[0]
	require.NoError(t, putRedis(within(t), first.Addr(), "k", "kept"))
	r.AwaitReady()
	r.CutReplication()
	require.NoError(t, putRedis(within(t), first.Addr(), "k", "lost"))

	first.Kill()
	require.Same(t, second, r.Owner("k"))
	got, err := getRedis(within(t), second.Addr(), "k")
	require.NoError(t, err)
	require.Equal(t, "kept", got)

	r.HealReplication()
	first.Restart()
	r.AwaitReady()
	require.Equal(t, []*testenv.Server{first}, r.Replicas("k"))
}
