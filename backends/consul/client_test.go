//go:build unix

package consulkv_test

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-cleanhttp"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
)

// ttl is the shortest TTL that testenv's servers grant.
const ttl = time.Second

// options fit testenv's servers.
var options = &consulkv.Options{MinTTL: ttl}

// A counter counts the requests that a client sends.
type counter struct {
	next  http.RoundTripper
	count atomic.Int64
	total *atomic.Int64 // counts for several clients, if not nil
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.count.Add(1)
	if c.total != nil {
		c.total.Add(1)
	}
	return c.next.RoundTrip(req)
}

var hosts atomic.Uint32

// nextHost returns an address of the loopback network to call from. A Consul
// agent takes up to 200 connections from one address by default, and a test has
// many watches.
func nextHost() *net.TCPAddr {
	n := hosts.Add(1)
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
}

// dial returns a client of its own, whose connections end with the test.
func dial(t testing.TB, addr string) *api.Client {
	t.Helper()
	client, _ := dialCounted(t, addr, nil)
	return client
}

func dialCounted(t testing.TB, addr string, config *api.Config) (*api.Client, *counter) {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	transport.DialContext = (&net.Dialer{LocalAddr: nextHost()}).DialContext
	t.Cleanup(transport.CloseIdleConnections)
	requests := &counter{next: transport}
	if config == nil {
		config = &api.Config{}
	}
	config.Address = addr
	config.HttpClient = &http.Client{Transport: requests}
	client, err := api.NewClient(config)
	require.NoError(t, err)
	return client, requests
}

// newName returns the name of a safe that nobody has used before.
func newName() string { return "consulkv-" + rand.Text() }

// signed returns what a new campaign would write.
func signed(value string, ttl time.Duration) kv.Record {
	return kv.Record{Signature: "sig-" + rand.Text(), Value: value, TTL: ttl}
}

// within bounds what a test does.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func create(t testing.TB, s kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	got, err := s.Create(within(t, time.Minute), name, rec)
	require.NoError(t, err)
	return got
}

// pair reads the key as another program does.
func pair(t testing.TB, client *api.Client, key string) *api.KVPair {
	t.Helper()
	got, _, err := client.KV().Get(key, &api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	require.NotNil(t, got, "there is no key %q", key)
	return got
}

// dialEach returns new clients of the addresses in turn, and the number of
// requests of them all.
func dialEach(addrs []string) (open func(testing.TB) *api.Client, count func() int64) {
	var (
		turn  atomic.Int64
		total atomic.Int64
	)
	open = func(t testing.TB) *api.Client {
		addr := addrs[int(turn.Add(1))%len(addrs)]
		client, requests := dialCounted(t, addr, nil)
		requests.total = &total
		return client
	}
	return open, total.Load
}
