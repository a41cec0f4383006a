// Package lock_test has package lock at work on real servers.
package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/lock"
)

const name = "reports"

// stores are servers, and how to reach them.
var stores = map[string]struct {
	start func(t *testing.T) *testenv.Server
	open  func(t *testing.T, server *testenv.Server) kv.Store
}{
	"etcd": {
		start: func(t *testing.T) *testenv.Server { return testenv.StartEtcd(t) },
		open:  openEtcd(func(client *clientv3.Client) kv.Store { return etcdkv.New(client, nil) }),
	},
	"etcd, in line": {
		start: func(t *testing.T) *testenv.Server { return testenv.StartEtcd(t) },
		open:  openEtcd(func(client *clientv3.Client) kv.Store { return etcdkv.NewQueue(client, nil) }),
	},
	"Consul": {
		start: func(t *testing.T) *testenv.Server { return testenv.StartConsul(t) },
		open: func(t *testing.T, server *testenv.Server) kv.Store {
			client, err := api.NewClient(&api.Config{Address: server.Addr()})
			require.NoError(t, err)
			return consulkv.New(client, nil)
		},
	},
	"Redis": {
		start: func(t *testing.T) *testenv.Server { return testenv.StartRedis(t) },
		open: func(t *testing.T, server *testenv.Server) kv.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			return rediskv.New(client, nil)
		},
	},
}

func openEtcd(with func(*clientv3.Client) kv.Store) func(*testing.T, *testenv.Server) kv.Store {
	return func(t *testing.T, server *testenv.Server) kv.Store {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Logger: zap.NewNop()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return with(client)
	}
}

// locked returns the lock, held.
func locked(t *testing.T, m *lock.Mutex) *lock.Held {
	t.Helper()
	held, err := m.Lock(t.Context())
	require.NoError(t, err)
	return held
}

func TestLocksOfRealServersExcludeOneAnother(t *testing.T) {
	for what, s := range stores {
		t.Run(what, func(t *testing.T) {
			server := s.start(t)
			const processes, turns = 3, 4
			other := s.open(t, server)
			var inside, runs int // for the race detector to watch
			var last uint64
			var all sync.WaitGroup
			for range processes {
				m, err := lock.New(s.open(t, server), name, &lock.Options{TTL: time.Minute})
				require.NoError(t, err)
				all.Go(func() {
					for range turns {
						err := m.Do(t.Context(), func(ctx context.Context, held *lock.Held) error {
							inside++
							if inside != 1 || held.Token() <= last {
								t.Errorf("%d at work, token %d after %d", inside, held.Token(), last)
							}
							last = held.Token()
							// Time in which another could lock, of whose record the store would know.
							rec, err := other.Get(ctx, name)
							if err == nil && rec.Token != held.Token() {
								t.Errorf("token %d at work, and the store has %d", held.Token(), rec.Token)
							}
							runs++
							inside--
							return err
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			require.Equal(t, processes*turns, runs)
		})
	}
}

func TestLocksOfRealServersTellWhatIsTheMatter(t *testing.T) {
	for what, s := range stores {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // it waits for locks to fade
			server := s.start(t)
			mutex := func() *lock.Mutex {
				m, err := lock.New(s.open(t, server), name, &lock.Options{TTL: 10 * time.Second})
				require.NoError(t, err)
				return m
			}
			mine, other := mutex(), mutex()
			held := locked(t, mine)
			_, err := other.TryLock(t.Context())
			require.ErrorIs(t, err, lock.ErrHeld)
			require.NotErrorIs(t, err, lock.ErrUnavailable)

			server.Kill()
			_, err = other.TryLock(soon(t))
			require.ErrorIs(t, err, lock.ErrUnavailable)
			require.NotErrorIs(t, err, lock.ErrHeld)
			_, err = mutex().Lock(soon(t))
			require.ErrorIs(t, err, lock.ErrUnavailable)
			require.ErrorIs(t, err, context.DeadlineExceeded)

			<-held.Context().Done()
			require.ErrorIs(t, context.Cause(held.Context()), lock.ErrLost)
			server.Restart()
			again, err := other.Lock(t.Context())
			require.NoError(t, err)
			require.Greater(t, again.Token(), held.Token())
			require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
			require.NoError(t, again.Err(), "the next one's lock is left alone")
			require.NoError(t, again.Unlock(t.Context()))
		})
	}
}

// soon returns a context that ends after a while in which a server answers.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}
