package rediskv_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// startSentinel starts one sentinel for a primary and returns its address.
func startSentinel(t *testing.T, primary string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(primary)
	require.NoError(t, err)
	own, file := freePort(t), filepath.Join(t.TempDir(), "sentinel.conf")
	config := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 1000\n", own, host, port)
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	// The shell ends the sentinel when its input does, however this process ends.
	sentinel := exec.Command("sh", "-c", `redis-server "$1" --sentinel >/dev/null & cat; kill -9 $!`, "sh", file)
	input, err := sentinel.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sentinel.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		require.NoError(t, sentinel.Wait())
	})
	return net.JoinHostPort("127.0.0.1", own)
}

// The replica has all that was written here. What a failover loses otherwise is
// as if the server had forgotten it.
func TestAnElectionGoesOnAfterAFailoverBySentinel(t *testing.T) {
	t.Parallel() // it mostly waits
	primary := testenv.StartRedis(t).Addr()
	host, port, err := net.SplitHostPort(primary)
	require.NoError(t, err)
	replica := testenv.StartRedis(t, "--replicaof", host+" "+port).Addr()
	sentinel := startSentinel(t, primary)

	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{sentinel}, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	b := newBench(t, replica)
	b.store = rediskv.New(client, nil)
	boss := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	t.Cleanup(func() { require.NoError(t, boss.Close()) })
	require.Eventually(t, func() bool {
		list, err := boss.Replicas(b.ctx, "main").Result()
		return err == nil && len(list) == 1 && list[0]["master-link-status"] == "ok"
	}, time.Minute, 100*time.Millisecond, "the sentinel knows the replica")

	name := b.name()
	rec := b.create(name, time.Hour)
	seen, _ := b.watch(b.store, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	require.Eventually(t, func() bool {
		return b.other.Get(b.ctx, name).Err() == nil
	}, slack, 10*time.Millisecond, "the replica has the record")
	require.NoError(t, boss.Failover(b.ctx, "main").Err())
	// Until it has heard of it, the old primary goes on: writes to it are lost.
	for addr, role := range map[string]string{replica: "master", primary: "slave"} {
		node := b.client(&redis.Options{Addr: addr})
		require.Eventually(t, func() bool {
			is, err := node.Do(b.ctx, "role").Slice()
			return err == nil && is[0] == role
		}, time.Minute, 50*time.Millisecond, "%s becomes %s", addr, role)
	}

	require.Eventually(t, func() bool {
		_, err := b.store.Refresh(b.ctx, name, rec)
		if errors.Is(err, kv.ErrStale) {
			t.Errorf("an owner is told that it lost a record that is there: %v", err)
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, rec, b.get(name))
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	next := b.create(name, time.Hour)
	require.Greater(t, next.Token, rec.Token)
	require.Equal(t, next, kv.Decode(b.other.Get(b.ctx, name).Val()), "the record is at the new primary")
}
