//go:build unix

package testenv_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestRedisTakesSettings(t *testing.T) {
	for name, s := range map[string]struct{ args, want []string }{
		"log synced always": {[]string{"--appendfsync", "always"}, []string{"appendfsync", "always"}},
		"no log":            {[]string{"--appendonly", "no"}, []string{"appendonly", "no"}},
		"memory":            {[]string{"--maxmemory", "12mb"}, []string{"maxmemory", "12582912"}},
		"eviction":          {[]string{"--maxmemory-policy", "volatile-lru"}, []string{"maxmemory-policy", "volatile-lru"}},
		"few clients":       {[]string{"--maxclients", "12"}, []string{"maxclients", "12"}},
		"no events":         {[]string{"--notify-keyspace-events", ""}, []string{"notify-keyspace-events", ""}},
		"small buffers": {[]string{"--client-output-buffer-limit", "pubsub", "1mb", "0", "0"},
			[]string{"client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 0 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redisClient(t, testenv.StartRedis(t, s.args...).Addr())
			got, err := client.ConfigGet(within(t), s.want[0]).Result()
			require.NoError(t, err)
			require.Equal(t, s.want[1], got[s.want[0]])
		})
	}
}

func TestRedisTakesPasswordsAndUsers(t *testing.T) {
	server := testenv.StartRedis(t, "--requirepass", "secret", "--user", "alice", "on", ">pw", "~*", "&*", "+@all")
	server.Restart()
	for _, o := range []redis.Options{{Password: "secret"}, {Username: "alice", Password: "pw"}} {
		o.Addr = server.Addr()
		client := redis.NewClient(&o)
		require.NoError(t, client.Set(within(t), "k", "v", 0).Err())
		require.NoError(t, client.Close())
	}
	require.Error(t, putRedis(within(t), server.Addr(), "k", "without a password"))
}

func TestRedisWithoutALogForgetsAtARestart(t *testing.T) {
	server := testenv.StartRedis(t, "--appendonly", "no")
	require.NoError(t, putRedis(within(t), server.Addr(), "k", "forgotten"))
	server.Restart()
	got, err := getRedis(within(t), server.Addr(), "k")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestRedisRefusesMoreClientsThanItWasAllowed(t *testing.T) {
	server := testenv.StartRedis(t, "--maxclients", "2")
	for range 2 {
		ping(t, dial(t, server.Addr()))
	}
	answer := make([]byte, 64)
	n, err := dial(t, server.Addr()).Read(answer)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(answer[:n]), "-ERR max number of clients reached"), "%s", answer[:n])
}
