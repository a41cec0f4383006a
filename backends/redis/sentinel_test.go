package rediskv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// The replica has all that was written here. What a failover loses otherwise is
// as if the server had forgotten it.
func TestAnElectionGoesOnAfterAFailoverBySentinel(t *testing.T) {
	t.Parallel() // it mostly waits
	nodes := testenv.StartRedisSentinel(t, 1)
	nodes.Patience(time.Minute)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: testenv.RedisPrimaryName, SentinelAddrs: nodes.SentinelAddrs(), ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	b := newBench(t, nodes.Replica().Addr())
	b.store = rediskv.New(client, nil)

	name := b.name()
	rec := b.create(name, time.Hour)
	seen, _ := b.watch(b.store, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	nodes.AwaitInStep()
	boss := redis.NewSentinelClient(&redis.Options{Addr: nodes.SentinelAddrs()[0], ReadTimeout: time.Minute})
	t.Cleanup(func() { require.NoError(t, boss.Close()) })
	var clients []*redis.Client
	for _, node := range nodes.Nodes {
		clients = append(clients, b.client(&redis.Options{Addr: node.Addr()}))
	}
	is := func(i int, role string) bool {
		reply, err := clients[i].Do(b.ctx, "role").Slice()
		return err == nil && reply[0] == role
	}
	// On a busy machine a sentinel may not hear of the replica for a while. It refuses then, or
	// gives up what it has agreed to. The old primary goes on until it has heard of the new one:
	// writes to it are lost.
	for end := time.Now().Add(2 * time.Minute); !is(0, "slave") || !is(1, "master"); time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "the replica does not become the primary")
		if !is(1, "slave") {
			continue
		}
		err := boss.Failover(b.ctx, testenv.RedisPrimaryName).Err()
		if !redis.HasErrorPrefix(err, "NOGOODSLAVE") && !redis.HasErrorPrefix(err, "INPROG") {
			require.NoError(t, err)
		}
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
