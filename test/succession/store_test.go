//go:build unix

package succession_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-cleanhttp"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	filekv "github.com/electkv/election/backends/file"
	memkv "github.com/electkv/election/backends/mem"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// A kind is a kind of store. What it is set up on, a test has opened link by
// link.
type kind struct {
	name  string
	setUp func(t testing.TB) (open func() link)
}

// A link is a client of a store, and the way there.
type link struct {
	store kv.Store
	cut   func() // no request gets there, and the client learns of it
	hush  func() // no request gets there, and nothing comes back
	heal  func()
}

// each runs a test on every kind of store.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			test(t, k)
		})
	}
}

func kinds() []kind {
	return []kind{
		{"mem", func(testing.TB) func() link {
			store := memkv.New()
			return func() link { return faulty(store) }
		}},
		{"file", func(t testing.TB) func() link {
			dir := t.TempDir()
			return func() link {
				store, err := filekv.New(dir, nil)
				require.NoError(t, err)
				return faulty(store)
			}
		}},
		{"etcd", func(t testing.TB) func() link {
			addr := testenv.Etcd(t)
			return func() link {
				return by(t, addr, func(addr string) kv.Store { return etcdkv.New(dialEtcd(t, addr), nil) })
			}
		}},
		{"consul", func(t testing.TB) func() link {
			addr := testenv.Consul(t)
			return func() link {
				return by(t, addr, func(addr string) kv.Store {
					return consulkv.New(dialConsul(t, addr), &consulkv.Options{MinTTL: time.Second})
				})
			}
		}},
		{"redis", func(t testing.TB) func() link {
			addr := testenv.Redis(t)
			return func() link {
				return by(t, addr, func(addr string) kv.Store { return rediskv.New(dialRedis(t, addr), nil) })
			}
		}},
	}
}

// by returns a link with a proxy in between.
func by(t testing.TB, addr string, open func(addr string) kv.Store) link {
	t.Helper()
	p := testenv.NewProxy(t, addr)
	return link{store: open(p.Addr()), cut: p.Cut, hush: p.BlackHole, heal: p.Heal}
}

var errCut = errors.New("the link is cut")

// faulty returns a link to a store that has no network in between.
func faulty(store kv.Store) link {
	faults := kvfault.Wrap(store)
	return link{
		store: faults.Store,
		cut:   func() { faults.On().Fail(errCut) },
		hush:  func() { faults.On().DropRequests() },
		heal:  faults.Heal,
	}
}

func dialEtcd(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{addr},
		Logger:               zap.NewNop(),
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: time.Second,
		// By default it takes up to two minutes to try again.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func dialConsul(t testing.TB, addr string) *api.Client {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 2000 // each watch has one
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: transport}})
	require.NoError(t, err)
	return client
}

func dialRedis(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr:                  addr,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}
