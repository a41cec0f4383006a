//go:build unix

package linear_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// startRedisCluster starts a Redis Cluster of three primaries.
func startRedisCluster(t *testing.T) []*testenv.Server {
	t.Helper()
	const size, slots = 3, 16384
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var servers []*testenv.Server
	var nodes []*redis.Client
	for i := range size {
		bus := freePort(t)
		server := testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		node := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer func() { require.NoError(t, node.Close()) }()
		require.NoError(t, node.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		require.NoError(t, node.ClusterAddSlotsRange(ctx, i*slots/size, (i+1)*slots/size-1).Err())
		host, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		servers, nodes = append(servers, server), append(nodes, node)
		require.NoError(t, nodes[0].Do(ctx, "cluster", "meet", host, port, bus).Err())
	}
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			info, err := node.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3\r\n")
		}, time.Minute, 50*time.Millisecond, "a node is not ready")
	}
	return servers
}

// freePort returns a port that nobody uses just now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
