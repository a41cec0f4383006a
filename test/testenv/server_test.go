//go:build unix

package testenv_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/electkv/election/internal/testenv"
)

// A store is one of the servers as the tests here use it.
type store struct {
	name   string
	shared func(testing.TB) string
	start  func(testing.TB) *testenv.Server
	put    func(ctx context.Context, addr, key, value string) error
	// get returns the empty string where there is no such key.
	get func(ctx context.Context, addr, key string) (string, error)
}

var stores = []store{
	{"etcd", testenv.Etcd, func(t testing.TB) *testenv.Server { return testenv.StartEtcd(t) }, putEtcd, getEtcd},
	{"consul", testenv.Consul, func(t testing.TB) *testenv.Server { return testenv.StartConsul(t) }, putConsul, getConsul},
	{"redis", testenv.Redis, func(t testing.TB) *testenv.Server { return testenv.StartRedis(t) }, putRedis, getRedis},
	{"postgres", testenv.Postgres, func(t testing.TB) *testenv.Server { return testenv.StartPostgres(t) }, putPostgres, getPostgres},
	{"mariadb", testenv.MariaDB, func(t testing.TB) *testenv.Server { return testenv.StartMariaDB(t) }, putMariaDB, getMariaDB},
}

func each(t *testing.T, test func(t *testing.T, s store)) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

func TestSharedServerIsOneAProcessAndServes(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		addr := s.shared(t)
		require.Equal(t, addr, s.shared(t))
		require.NoError(t, s.put(t.Context(), addr, "testenv/shared", "x"))
	})
}

func TestEnvironmentNamesTheSharedServer(t *testing.T) {
	for variable, shared := range map[string]func(testing.TB) string{
		"ELECTION_TEST_ETCD":     testenv.Etcd,
		"ELECTION_TEST_CONSUL":   testenv.Consul,
		"ELECTION_TEST_REDIS":    testenv.Redis,
		"ELECTION_TEST_POSTGRES": testenv.Postgres,
		"ELECTION_TEST_MYSQL":    testenv.MariaDB,
	} {
		t.Setenv(variable, "192.0.2.1:"+variable)
		require.Equal(t, "192.0.2.1:"+variable, shared(t))
	}
}

func TestServerKeepsNoGoroutine(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		s.shared(t)
		s.start(t)
		goleak.VerifyNone(t)
	})
}

func TestPausedServerAnswersNothingUntilItGoesOn(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		server := s.start(t)
		server.Pause()
		server.Pause()

		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		// At a key of its own: it may be carried out later.
		require.Error(t, s.put(ctx, server.Addr(), "paused", "k"))
		dial(t, server.Addr()).Close() // The kernel still accepts.

		server.Continue()
		require.NoError(t, s.put(within(t), server.Addr(), "k", "goes on"))
		got, err := s.get(within(t), server.Addr(), "k")
		require.NoError(t, err)
		require.Equal(t, "goes on", got)
	})
}

func TestKilledServerRefusesConnectionsAndRestartsWithItsData(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		server := s.start(t)
		addr := server.Addr()
		require.NoError(t, s.put(within(t), addr, "k", "kept"))

		server.Kill()
		server.Kill()
		requireRefused(t, addr)

		server.Restart()
		require.Equal(t, addr, server.Addr())
		got, err := s.get(within(t), addr, "k")
		require.NoError(t, err)
		require.Equal(t, "kept", got)
	})
}

func TestWipedServerRestartsEmpty(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		server := s.start(t)
		require.NoError(t, s.put(within(t), server.Addr(), "k", "lost"))

		server.Kill()
		server.Wipe()
		server.Restart()
		got, err := s.get(within(t), server.Addr(), "k")
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestRestartKillsAServerThatRunsOrIsPaused(t *testing.T) {
	server := testenv.StartRedis(t)
	conn := dial(t, server.Addr())
	server.Restart()
	requireClosed(t, conn)

	conn = dial(t, server.Addr())
	server.Pause()
	server.Restart()
	requireClosed(t, conn)
	require.NoError(t, putRedis(within(t), server.Addr(), "k", "v"))
}

func TestServerEndsWithItsTest(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		var server *testenv.Server
		t.Run("its test", func(t *testing.T) {
			server = s.start(t)
			server.Pause()
		})
		requireRefused(t, server.Addr())
	})
}

// within returns a context that bounds a request that should succeed.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func requireRefused(t testing.TB, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err == nil {
		conn.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// requireClosed waits for the other side to end the connection.
func requireClosed(t testing.TB, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection is still open")
}

func putEtcd(ctx context.Context, addr, key, value string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Put(ctx, key, value)
	return err
}

func getEtcd(ctx context.Context, addr, key string) (string, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		return "", err
	}
	defer client.Close()
	resp, err := client.Get(ctx, key)
	if err != nil || len(resp.Kvs) == 0 {
		return "", err
	}
	return string(resp.Kvs[0].Value), nil
}

// newConsulClient makes a client that keeps no connections.
func newConsulClient(addr string) (*api.Client, error) {
	config := api.DefaultNonPooledConfig()
	config.Address = addr
	return api.NewClient(config)
}

func putConsul(ctx context.Context, addr, key, value string) error {
	client, err := newConsulClient(addr)
	if err != nil {
		return err
	}
	_, err = client.KV().Put(&api.KVPair{Key: key, Value: []byte(value)}, new(api.WriteOptions).WithContext(ctx))
	return err
}

func getConsul(ctx context.Context, addr, key string) (string, error) {
	client, err := newConsulClient(addr)
	if err != nil {
		return "", err
	}
	pair, _, err := client.KV().Get(key, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err != nil || pair == nil {
		return "", err
	}
	return string(pair.Value), nil
}

func putRedis(ctx context.Context, addr, key, value string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	return client.Set(ctx, key, value, 0).Err()
}

func getRedis(ctx context.Context, addr, key string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	value, err := client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}
