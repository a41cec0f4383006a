package testenv_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestRedisTellsTheTimeThatItsClockWasSetTo(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedisWithClock(t)
	client := redisClient(t, server.Addr())
	requireOffset(t, client, 0)
	server.SetClock(-time.Hour)
	requireOffset(t, client, -time.Hour)
	server.JumpClock(90 * time.Minute)
	requireOffset(t, client, 30*time.Minute)
	server.Restart()
	requireOffset(t, client, 30*time.Minute)
	server.SetClock(0)
	requireOffset(t, client, 0)
}

func TestKeyExpiresByTheClockThatJumps(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedisWithClock(t)
	client := redisClient(t, server.Addr())
	require.NoError(t, client.Set(within(t), "early", "v", time.Minute).Err())
	require.NoError(t, client.Set(within(t), "later", "v", time.Hour).Err())

	server.JumpClock(2 * time.Minute)
	require.ErrorIs(t, client.Get(within(t), "early").Err(), redis.Nil)
	require.Less(t, client.PTTL(within(t), "later").Val(), 59*time.Minute)

	server.JumpClock(-2 * time.Hour)
	require.Greater(t, client.PTTL(within(t), "later").Val(), 2*time.Hour)
}

// requireOffset fails if the server's clock is not this machine's plus offset.
func requireOffset(t *testing.T, client *redis.Client, offset time.Duration) {
	t.Helper()
	const slack = 100 * time.Millisecond // Redis reads its clock now and then
	least := time.Now().Add(offset - slack)
	got, err := client.Time(within(t)).Result()
	require.NoError(t, err)
	require.WithinRange(t, got, least, time.Now().Add(offset+slack))
}
