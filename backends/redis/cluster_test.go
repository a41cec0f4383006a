package rediskv_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// startCluster starts a Redis Cluster of three primaries and returns their
// addresses.
func startCluster(t *testing.T) []string {
	t.Helper()
	var addrs []string
	for range 3 {
		addrs = append(addrs, testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000").Addr())
	}
	args := append([]string{"--cluster", "create"}, addrs...)
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		require.Eventually(t, func() bool {
			info, err := client.ClusterInfo(context.Background()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		}, time.Minute, 50*time.Millisecond, "a cluster node is not ready")
	}
	return addrs
}
