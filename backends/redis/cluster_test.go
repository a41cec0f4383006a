package rediskv_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

const slots = 16384

// startCluster starts a Redis Cluster of three primaries and returns their
// addresses.
func startCluster(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var addrs []string
	var nodes []*redis.Client
	for i := range 3 {
		bus := freePort(t)
		server := testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		node := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { require.NoError(t, node.Close()) })
		require.NoError(t, node.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		require.NoError(t, node.ClusterAddSlotsRange(ctx, i*slots/3, (i+1)*slots/3-1).Err())
		host, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		addrs, nodes = append(addrs, server.Addr()), append(nodes, node)
		require.NoError(t, nodes[0].Do(ctx, "cluster", "meet", host, port, bus).Err())
	}
	ready(ctx, t, nodes)
	return addrs
}

// ready waits until the nodes know each other and serve.
func ready(ctx context.Context, t *testing.T, nodes []*redis.Client) {
	t.Helper()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(nodes))
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			info, err := node.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, known)
		}, time.Minute, 50*time.Millisecond, "a cluster node is not ready")
	}
}

// What is read is the present state, though the client may read from replicas.
func TestReadsAreOfThePrimaryWhereverTheClientReads(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var addrs []string
	var nodes []*redis.Client
	for range 2 {
		bus := freePort(t)
		server := testenv.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		node := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { require.NoError(t, node.Close()) })
		host, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		addrs, nodes = append(addrs, server.Addr()), append(nodes, node)
		require.NoError(t, nodes[0].Do(ctx, "cluster", "meet", host, port, bus).Err())
	}
	primary, replica := nodes[0], nodes[1]
	require.NoError(t, primary.ClusterAddSlotsRange(ctx, 0, slots-1).Err())
	id, err := primary.Do(ctx, "cluster", "myid").Text()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return replica.ClusterReplicate(ctx, id).Err() == nil
	}, time.Minute, 50*time.Millisecond, "the replica knows its primary")
	ready(ctx, t, nodes)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, RouteRandomly: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.Eventually(t, func() bool {
		list, err := primary.ClusterShards(ctx).Result()
		return err == nil && len(list) == 1 && len(list[0].Nodes) == 2
	}, time.Minute, 50*time.Millisecond, "the primary knows its replica")

	b := &bench{T: t, ctx: ctx, store: rediskv.New(client, nil), other: replica}
	name := b.name()
	client.ReloadState(ctx)
	for range 50 {
		rec := b.create(name, time.Minute)
		require.Equal(t, rec, b.get(name))
		require.NoError(t, b.store.Delete(ctx, name, rec))
	}
	require.Zero(t, b.calls(), "scripts that the replica was sent")
}

func TestARecordIsKeptWhileItsSlotMigrates(t *testing.T) {
	t.Parallel() // it mostly waits
	addrs := startCluster(t)
	b := newBench(t, addrs...)
	cluster := b.other.(*redis.ClusterClient)
	name := b.name()
	rec := b.create(name, time.Hour)
	from, err := cluster.MasterForKey(b.ctx, name)
	require.NoError(t, err)
	elsewhere := slices.IndexFunc(addrs, func(addr string) bool { return addr != from.Options().Addr })
	to := b.client(&redis.Options{Addr: addrs[elsewhere]})
	slot := cluster.ClusterKeySlot(b.ctx, name).Val()
	fromID, toID := from.Do(b.ctx, "cluster", "myid").Val(), to.Do(b.ctx, "cluster", "myid").Val()
	require.NoError(t, to.Do(b.ctx, "cluster", "setslot", slot, "importing", fromID).Err())
	require.NoError(t, from.Do(b.ctx, "cluster", "setslot", slot, "migrating", toID).Err())
	host, port, err := net.SplitHostPort(to.Options().Addr)
	require.NoError(t, err)
	move := func(key string) {
		t.Helper()
		require.NoError(t, from.Migrate(b.ctx, host, port, key, 0, time.Minute).Err())
	}
	kept := func(published bool) {
		t.Helper()
		require.Equal(t, rec, b.get(name))
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(t, err)
		_, err = b.store.Create(b.ctx, name, b.signed(time.Hour))
		if !published {
			b.unknown(err)
			return
		}
		require.ErrorIs(t, err, kv.ErrHeld)
	}
	kept(true)
	move(name)
	kept(false)
	move(counter(name))
	kept(true)
	for _, node := range []*redis.Client{to, from} {
		require.NoError(t, node.Do(b.ctx, "cluster", "setslot", slot, "node", toID).Err())
	}
	kept(true)
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	require.Greater(t, b.create(name, time.Hour).Token, rec.Token)
}

// freePort returns a port that nobody uses just now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
