//go:build unix

package consulkv_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-cleanhttp"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// ttl is the shortest TTL that testenv's servers grant.
const ttl = time.Second

// options fit testenv's servers, and so do those for plain values.
var (
	options = &consulkv.Options{MinTTL: ttl}
	plain   = &consulkv.Options{MinTTL: ttl, Plain: true}
)

// inEachForm runs f for records as text and for plain values.
func inEachForm(t *testing.T, f func(t *testing.T, opts *consulkv.Options)) {
	t.Helper()
	t.Run("as text", func(t *testing.T) { f(t, options) })
	t.Run("plain", func(t *testing.T) { f(t, plain) })
}

// A wire is what a client sends its requests through.
type wire struct {
	next  http.RoundTripper
	count atomic.Int64
	total *atomic.Int64 // counts for several clients, if not nil
	lax   atomic.Int64  // reads of keys that were not in consistent mode

	mu     sync.Mutex
	before func(*http.Request) // runs before the next transaction that writes is sent
	paths  map[string]int      // requests of each path
	deny   func(*http.Request) error
}

// refuse has requests fail for which deny returns an error.
func (w *wire) refuse(deny func(*http.Request) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deny = deny
}

// take returns how many requests there were since it was last called, by the beginning of their path.
func (w *wire) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.paths
	w.paths = nil
	return all
}

// note counts a request, and returns why it is to fail.
func (w *wire) note(req *http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paths == nil {
		w.paths = make(map[string]int)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v1/"), "/consulkv-")
	w.paths[strings.TrimRight(path, "0123456789abcdef-")]++
	if w.deny != nil {
		return w.deny(req)
	}
	return nil
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.count.Add(1)
	if w.total != nil {
		w.total.Add(1)
	}
	if err := w.note(req); err != nil {
		return nil, err
	}
	transaction := req.URL.Path == "/v1/txn"
	reads := req.Method == http.MethodGet || transaction && onlyReads(req)
	if reads && !req.URL.Query().Has("consistent") {
		w.lax.Add(1)
	}
	if transaction && !reads {
		w.mu.Lock()
		before := w.before
		w.before = nil
		w.mu.Unlock()
		if before != nil {
			before(req)
		}
	}
	return w.next.RoundTrip(req)
}

// onlyReads reports whether a transaction has nothing but reads.
func onlyReads(req *http.Request) bool {
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var ops api.TxnOps
	if err := json.NewDecoder(body).Decode(&ops); err != nil {
		return false
	}
	return !slices.ContainsFunc(ops, func(op *api.TxnOp) bool {
		return !slices.Contains([]api.KVOp{api.KVGetOrEmpty, api.KVCheckIndex, api.KVCheckNotExists, api.KVCheckSession}, op.KV.Verb)
	})
}

// beforeTxn makes f run once, right before the next transaction that writes is
// sent.
func (w *wire) beforeTxn(f func(*http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
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

func dialCounted(t testing.TB, addr string, config *api.Config) (*api.Client, *wire) {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	transport.DialContext = (&net.Dialer{LocalAddr: nextHost()}).DialContext
	t.Cleanup(transport.CloseIdleConnections)
	requests := &wire{next: transport}
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
	for try := 1; ; try++ {
		began := time.Now()
		got, err := s.Create(within(t, time.Minute), name, rec)
		if err != nil && strings.Contains(err.Error(), "invalid session") && time.Since(began) > rec.TTL && try < 5 {
			continue // it was over before the write was there: the machine is busy
		}
		require.NoError(t, err)
		return got
	}
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

// open returns a store on the shared server, with the client beneath it.
func open(t testing.TB) (kv.Store, *api.Client, *wire) {
	t.Helper()
	return openAs(t, options)
}

func openAs(t testing.TB, opts *consulkv.Options) (*consulkv.Store, *api.Client, *wire) {
	t.Helper()
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	return consulkv.New(client, opts), client, requests
}

// sessions returns how many sessions were made for the records of a safe and
// are still there.
func sessions(t testing.TB, client *api.Client, name string) int {
	t.Helper()
	list, _, err := client.Session().List(&api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	n := 0
	for _, s := range list {
		if s.Name == "election: "+name {
			n++
		}
	}
	return n
}

// An operator writes and deletes keys without a thought of sessions.
type operator struct{ client *api.Client }

func (o operator) put(t testing.TB, name, value string) {
	_, err := o.client.KV().Put(&api.KVPair{Key: name, Value: []byte(value)}, nil)
	require.NoError(t, err)
}

func (o operator) remove(t testing.TB, name string) {
	_, err := o.client.KV().Delete(name, nil)
	require.NoError(t, err)
}
