//go:build unix

package testenv_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestSentinelsPromoteTheReplicaThatIsInStep(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedisSentinel(t, 3)
	require.Len(t, r.SentinelAddrs(), 3)
	first, second := r.Nodes[0], r.Nodes[1]
	require.Same(t, first, r.Primary())
	require.Same(t, second, r.Replica())
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: testenv.RedisPrimaryName, SentinelAddrs: r.SentinelAddrs(), ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { client.Close() })
	require.NoError(t, client.Set(within(t), "k", "kept", 0).Err())
	r.AwaitInStep()

	first.Kill()
	require.Same(t, second, r.Primary())
	require.Equal(t, "kept", client.Get(within(t), "k").Val())

	// On a busy machine the sentinels may change their minds once more.
	first.Restart()
	r.AwaitInStep()
	replica := r.Replica()
	require.NotSame(t, replica, r.Primary())
	got, err := getRedis(within(t), replica.Addr(), "k")
	require.NoError(t, err)
	require.Equal(t, "kept", got, "both have it")
	r.Primary().Restart()
	require.Equal(t, "kept", client.Get(within(t), "k").Val())
}

func TestFailoverLosesWhatWasWrittenAfterTheReplicationWasCut(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedisSentinel(t, 1)
	require.NoError(t, putRedis(within(t), r.Primary().Addr(), "before", "kept"))
	r.AwaitInStep()

	r.CutReplication()
	require.NoError(t, putRedis(within(t), r.Primary().Addr(), "after", "lost"))
	first := r.Primary()
	first.Pause()
	second := r.Primary()
	require.NotSame(t, first, second)
	for key, want := range map[string]string{"before": "kept", "after": ""} {
		got, err := getRedis(within(t), second.Addr(), key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	first.Continue()
	r.HealReplication()
	r.AwaitInStep()
	got, err := getRedis(within(t), first.Addr(), "after")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestHealedReplicationCatchesUp(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedisSentinel(t, 1)
	r.CutReplication()
	require.NoError(t, putRedis(within(t), r.Primary().Addr(), "k", "late"))
	got, err := getRedis(within(t), r.Replica().Addr(), "k")
	require.NoError(t, err)
	require.Empty(t, got)

	r.HealReplication()
	r.AwaitInStep()
	got, err = getRedis(within(t), r.Replica().Addr(), "k")
	require.NoError(t, err)
	require.Equal(t, "late", got)
}
