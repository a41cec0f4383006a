//go:build unix

package linear_test

import (
	"context"
	"net"
	"net/http"
	"slices"
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
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// newWires gives each client a proxy in front of each server, and those who let
// records fade too.
func newWires(t testing.TB, addrs ...string) []wire {
	t.Helper()
	wires := make([]wire, clients+2)
	for i := range wires {
		for _, addr := range addrs {
			wires[i] = append(wires[i], testenv.NewProxy(t, addr))
		}
	}
	return wires
}

func (w wire) addrs() []string {
	var addrs []string
	for _, p := range w {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

func dialEtcd(t testing.TB, w wire) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: w.addrs(),
		Logger:    zap.NewNop(),
		// By default it takes up to two minutes to try again.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: timeout,
		})},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// dialConsul returns a client of one server: Consul's client knows no more.
func dialConsul(t testing.TB, p *testenv.Proxy) *api.Client {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(&api.Config{Address: p.Addr(), HttpClient: &http.Client{Transport: transport}})
	require.NoError(t, err)
	return client
}

// dialRedis returns a client of a server, or of a cluster of several. The nodes
// of a cluster tell their own addresses, so it is the dialing that is diverted.
func dialRedis(t testing.TB, w wire, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:                 addrs,
		ContextTimeoutEnabled: true,
		DialTimeout:           timeout,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if i := slices.Index(addrs, addr); i >= 0 {
				addr = w[i].Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// etcdSubject is etcd at the addresses, each client with a way to all of them.
func etcdSubject(t testing.TB, recorder *linear.Recorder, name string, addrs []string, faults []fault) subject {
	wires := newWires(t, addrs...)
	return subject{
		name:   name,
		faults: append(wireFaults(wires), faults...),
		brief:  time.Second, // the shortest that etcd grants here
		shares: true,
		open: func(client int) kv.Store {
			return recorder.Client(client, etcdkv.New(dialEtcd(t, wires[client]), nil))
		},
	}
}

func consulSubject(t testing.TB, recorder *linear.Recorder, name string, addrs []string, faults []fault) subject {
	wires := newWires(t, addrs...)
	return subject{
		name:   name,
		faults: append(wireFaults(wires), faults...),
		open: func(client int) kv.Store {
			node := wires[client][client%len(addrs)]
			return recorder.Client(client, consulkv.New(dialConsul(t, node), nil))
		},
	}
}

func redisSubject(t testing.TB, recorder *linear.Recorder, name string, addrs []string, faults []fault) subject {
	wires := newWires(t, addrs...)
	return subject{
		name:   name,
		faults: append(wireFaults(wires), faults...),
		brief:  300 * time.Millisecond,
		open: func(client int) kv.Store {
			return recorder.Client(client, rediskv.New(dialRedis(t, wires[client], addrs...), nil))
		},
	}
}

// observed is a subject whose store lets observers judge expiry. There no record
// fades in a trial: when one has is not the same for all who look, and whoever sees
// it later than others tells another story.
func observed(t testing.TB, recorder *linear.Recorder, name string, server *testenv.Server, store func(wire) kv.Store) subject {
	wires := newWires(t, server.Addr())
	return subject{
		name:   name + "-observed",
		faults: append(wireFaults(wires), serverFaults("server", time.Second, one(server))...),
		open:   func(client int) kv.Store { return recorder.Client(client, store(wires[client])) },
	}
}

func TestObservedEtcdIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartEtcd(t), linear.NewRecorder()
	try(t, recorder, observed(t, recorder, "etcd", server, func(w wire) kv.Store {
		return etcdkv.NewObserved(dialEtcd(t, w), nil)
	}))
}

func TestObservedConsulIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartConsul(t), linear.NewRecorder()
	try(t, recorder, observed(t, recorder, "consul", server, func(w wire) kv.Store {
		return consulkv.NewObserved(dialConsul(t, w[0]), nil)
	}))
}

func TestObservedRedisIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartRedis(t), linear.NewRecorder()
	try(t, recorder, observed(t, recorder, "redis", server, func(w wire) kv.Store {
		return rediskv.NewObserved(dialRedis(t, w, server.Addr()), nil)
	}))
}

func TestEtcdIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartEtcd(t), linear.NewRecorder()
	faults := serverFaults("server", time.Second, one(server))
	try(t, recorder, etcdSubject(t, recorder, "etcd", []string{server.Addr()}, faults))
}

func TestAnEtcdClusterIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	cluster, recorder := testenv.StartEtcdCluster(t), linear.NewRecorder()
	try(t, recorder, etcdSubject(t, recorder, "etcd3", cluster.Addrs(), clusterFaults(cluster)))
}

func TestConsulIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartConsul(t), linear.NewRecorder()
	faults := serverFaults("server", time.Second, one(server))
	try(t, recorder, consulSubject(t, recorder, "consul", []string{server.Addr()}, faults))
}

func TestAConsulClusterIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	cluster, recorder := testenv.StartConsulCluster(t), linear.NewRecorder()
	try(t, recorder, consulSubject(t, recorder, "consul3", cluster.Addrs(), clusterFaults(cluster)))
}

func TestRedisIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartRedis(t), linear.NewRecorder()
	faults := serverFaults("server", time.Second, one(server))
	try(t, recorder, redisSubject(t, recorder, "redis", []string{server.Addr()}, faults))
}

// Three primaries, without replicas: a failover of Redis may lose what it has
// acknowledged, which no client can mend.
func TestARedisClusterIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	cluster, recorder := testenv.StartRedisCluster(t, 3, 0), linear.NewRecorder()
	faults := serverFaults("primary", time.Second, one(cluster.Nodes...))
	try(t, recorder, redisSubject(t, recorder, "redis-cluster", cluster.Addrs(), faults))
}
