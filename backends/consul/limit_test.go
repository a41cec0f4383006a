//go:build unix

package consulkv_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-cleanhttp"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// defaultLimit is how many connections an agent takes from one address if nobody has
// told it otherwise.
const defaultLimit = 200

func startLimited(t testing.TB, limit int) *testenv.Server {
	t.Helper()
	return testenv.StartConsul(t, map[string]any{"limits": map[string]any{"http_max_conns_per_client": limit}})
}

// dialFrom returns a client that calls from the address, as api.NewClient makes it but
// for that.
func dialFrom(t testing.TB, host *net.TCPAddr, addr string, mend func(*http.Transport)) *api.Client {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	transport.DialContext = (&net.Dialer{LocalAddr: host}).DialContext
	if mend != nil {
		mend(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: transport}})
	require.NoError(t, err)
	return client
}

// A crowd is many candidates in one process.
type crowd struct {
	t         testing.TB
	elections int
	led, lost atomic.Int64
	stopping  atomic.Bool
	stop      func()
}

// gather has two candidates stand in each of so many elections, all over one client.
func gather(t *testing.T, client *api.Client, elections int, ttl time.Duration) *crowd {
	t.Helper()
	c := &crowd{t: t, elections: elections}
	ctx, cancel := context.WithCancel(context.Background())
	var candidates sync.WaitGroup
	c.stop = sync.OnceFunc(func() {
		c.stopping.Store(true)
		cancel()
		candidates.Wait()
	})
	t.Cleanup(c.stop)
	prefix := newName()
	for i := range elections {
		for j := range 2 {
			candidate, err := election.New(consulkv.New(client, options), fmt.Sprint(prefix, "-", i), &election.Options{ID: fmt.Sprint(j), TTL: ttl})
			require.NoError(t, err)
			candidates.Go(func() { _ = candidate.Run(ctx, c.lead) })
		}
	}
	return c
}

// elects waits until each election has a leader, and reports whether that took less than a minute.
func (c *crowd) elects() bool {
	for began := time.Now(); c.led.Load() < int64(c.elections); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			return false
		}
	}
	return true
}

func (c *crowd) lead(ctx context.Context, _ *election.Term) error {
	c.led.Add(1)
	<-ctx.Done()
	if !c.stopping.Load() {
		c.lost.Add(1)
		c.t.Logf("a term ended: %v", context.Cause(ctx))
	}
	return nil
}

func (c *crowd) keptTheirTerms(t *testing.T) {
	t.Helper()
	require.Zero(t, c.lost.Load(), "terms lost")
	require.EqualValues(t, c.elections, c.led.Load(), "terms in all")
}

func TestAHundredElectionsOfAProcessKeepTheirTermsAtAnAgentsDefaultLimit(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const ttl = 12 * time.Second // much longer than a busy machine stands still
	server := startLimited(t, defaultLimit)
	c := gather(t, dialFrom(t, nextHost(), server.Addr(), nil), 100, ttl)
	require.True(t, c.elects(), "each has a leader")
	time.Sleep(2 * ttl)
	c.keptTheirTerms(t)
}

// A hog takes all connections that an agent has for an address, until the test says
// that it lets go.
func hog(t testing.TB, host *net.TCPAddr, addr string) (taken func() int, letGo func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var (
		running sync.WaitGroup
		count   atomic.Int64
	)
	running.Go(func() {
		for ctx.Err() == nil {
			conn, err := (&net.Dialer{LocalAddr: host}).DialContext(ctx, "tcp", addr)
			if err != nil {
				continue
			}
			running.Go(func() {
				defer conn.Close()
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				defer stop()
				count.Add(1)
				defer count.Add(-1)
				_, _ = bufio.NewReader(conn).ReadByte() // an answer nobody asked for: 429
			})
			time.Sleep(2 * time.Millisecond)
		}
	})
	letGo = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(letGo)
	return func() int { return int(count.Load()) }, letGo
}

// A hundred leaders and their heirs make some eighty requests a second over the three
// connections that the client keeps open. On a machine that is too busy for that there are
// fewer of them in the next try.
func TestTermsSurviveAnotherProcessThatTakesAllConnectionsOfTheirAddress(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for _, elections := range []int{100, 40, 15} {
		const enough = 30 * time.Millisecond // for eighty answers a second over three connections
		lost, slowest := termsLostBesideAHog(t, elections)
		t.Logf("%d of %d terms lost; the slowest answer took %v", lost, elections, slowest)
		if lost == 0 {
			return
		}
		require.Greater(t, slowest, enough, "terms were lost though the agent answered in time")
	}
	require.Fail(t, "terms were lost")
}

// termsLostBesideAHog returns how many terms were lost while another process took all
// connections, and the slowest answer of the agent meanwhile. When a request runs out of
// time, its connection is closed, and the other process takes what would replace it.
func termsLostBesideAHog(t *testing.T, elections int) (lost int64, slowest time.Duration) {
	const ttl = 15 * time.Second // the default
	server := startLimited(t, defaultLimit)
	host := nextHost()
	c := gather(t, dialFrom(t, host, server.Addr(), nil), elections, ttl)
	defer c.stop()
	require.True(t, c.elects(), "each has a leader")
	most := probe(t, dialFrom(t, nextHost(), server.Addr(), nil))
	time.Sleep(ttl)
	taken, letGo := hog(t, host, server.Addr())
	require.Eventually(t, func() bool { return taken() > defaultLimit*3/4 }, time.Minute, 10*time.Millisecond)
	time.Sleep(2 * ttl)
	letGo()
	return c.lost.Load(), most()
}

// probe asks an agent something again and again, until the test ends, and tells how long
// the slowest answer took.
func probe(t testing.TB, client *api.Client) (slowest func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	var most atomic.Int64
	asking.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			_, _, err := client.KV().Get("probe", (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("probe: %v", err)
			}
			most.Store(max(most.Load(), int64(time.Since(start))))
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		asking.Wait()
	})
	return func() time.Duration { return time.Duration(most.Load()) }
}

// The bound is that of the program's own transport, which nobody tells this package of. On a machine
// that is too busy for so many requests over one connection, TTLs are longer in the next try.
func TestTermsSurviveAClientThatOpensFewConnections(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{1, 4} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			t.Parallel()
			for ttl := 12 * time.Second; !termsSurvive(t, bound, ttl); ttl *= 2 {
				require.Less(t, ttl, 40*time.Second, "terms were lost, or elections had no leader")
			}
		})
	}
}

// termsSurvive reports whether ten elections over so many connections get leaders, who keep their terms.
func termsSurvive(t *testing.T, bound int, ttl time.Duration) bool {
	client := dialFrom(t, nextHost(), testenv.Consul(t), func(tr *http.Transport) { tr.MaxConnsPerHost = bound })
	c := gather(t, client, 10, ttl)
	defer c.stop()
	if !c.elects() {
		return false
	}
	time.Sleep(2 * ttl)
	if c.lost.Load() > 0 {
		return false
	}
	c.keptTheirTerms(t)
	return true
}

// A meter counts the blocking queries under way, and all requests.
type meter struct {
	next                http.RoundTripper
	blocking, most, all atomic.Int64
	changes             sync.Mutex
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	m.all.Add(1)
	if req.URL.Query().Get("index") != "" {
		m.changes.Lock()
		m.most.Store(max(m.most.Load(), m.blocking.Add(1)))
		m.changes.Unlock()
		defer m.blocking.Add(-1) // its headers come when it ends
	}
	return m.next.RoundTrip(req)
}

func dialMetered(t testing.TB) (*api.Client, *meter) {
	t.Helper()
	transport := cleanhttp.DefaultPooledTransport()
	transport.DialContext = (&net.Dialer{LocalAddr: nextHost()}).DialContext
	t.Cleanup(transport.CloseIdleConnections)
	requests := &meter{next: transport}
	client, err := api.NewClient(&api.Config{Address: testenv.Consul(t), HttpClient: &http.Client{Transport: requests}})
	require.NoError(t, err)
	return client, requests
}

func TestManyWatchesOfAClientHoldFewConnectionsAndSeeEverything(t *testing.T) {
	t.Parallel()
	const many = 120
	watching, requests := dialMetered(t)
	s, client, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer cancel()
	names, seen := make([]string, many), make(chan error, 4*many)
	for i := range names {
		names[i] = newName()
		crowd.Go(func() {
			for _, err := range consulkv.New(watching, options).Watch(ctx, names[i]) {
				if ctx.Err() == nil {
					seen <- err
				}
			}
		})
	}
	all := func(state error) {
		t.Helper()
		over := within(t, time.Minute)
		for n := range many {
			select {
			case err := <-seen:
				require.Equal(t, state, err)
			case <-over.Done():
				require.FailNow(t, "watches are not told", "%d of %d", n, many)
			}
		}
	}
	all(kv.ErrVacant)

	before, start := requests.all.Load(), time.Now()
	time.Sleep(5 * time.Second)
	sent, window := requests.all.Load()-before, time.Since(start)
	t.Logf("%d watches sent %d requests in %v", many, sent, window)
	const burst, perSecond, blocking = 256, 50, 16
	require.LessOrEqual(t, float64(sent), burst+blocking+perSecond*window.Seconds())
	require.Empty(t, seen)

	var leases []string
	for _, name := range names {
		leases = append(leases, create(t, s, name, signed("v", time.Hour)).Lease)
	}
	all(nil)
	for _, lease := range leases {
		end(t, client, lease)
	}
	all(kv.ErrVacant)
	require.Empty(t, seen)
	require.LessOrEqual(t, requests.most.Load(), int64(16), "blocking queries at once")
	require.Positive(t, requests.most.Load())
}

// It does not matter which of them asks: when it leaves, another does.
func TestTheWatchesOfOneKeyShareABlockingQuery(t *testing.T) {
	t.Parallel()
	const many = 60
	client, requests := dialMetered(t)
	s, _, _ := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	seen, watches := make(chan kv.Record, 4*many), sync.WaitGroup{}
	defer watches.Wait()
	leaves := make([]context.CancelFunc, many)
	for i := range leaves {
		var ctx context.Context
		ctx, leaves[i] = context.WithCancel(t.Context())
		defer leaves[i]()
		watches.Go(func() {
			for rec, err := range consulkv.New(client, options).Watch(ctx, name) {
				if err == nil {
					seen <- rec
				}
			}
		})
	}
	see := func(n int) {
		t.Helper()
		over := within(t, time.Minute)
		for range n {
			select {
			case got := <-seen:
				require.Equal(t, rec, got)
			case <-over.Done():
				require.FailNow(t, "a watch is not told")
			}
		}
	}
	see(many)
	require.Eventually(t, func() bool { return requests.blocking.Load() == 1 }, time.Minute, time.Millisecond)
	before := requests.all.Load()
	rec = publish(t, s, name, rec, "changed")
	see(many)
	require.Eventually(t, func() bool { return requests.blocking.Load() == 1 }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, requests.all.Load()-before, int64(3), "requests for a change that all see")
	for i := range many - 1 {
		leaves[i]()
	}
	rec = publish(t, s, name, rec, "changed again")
	see(1) // if more were told before they had left, they are not waited for
	require.EqualValues(t, 1, requests.most.Load(), "blocking queries at once")
}

func TestAnOperationThatIsRefusedAConnectionSaysWhatTheMatterIs(t *testing.T) {
	refuse := atomic.Bool{}
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		if refuse.Load() {
			http.Error(w, "Your IP is issuing too many concurrent connections, please rate limit your calls", http.StatusTooManyRequests)
			return
		}
		w.Header().Set("X-Consul-Index", "7")
		fmt.Fprintf(w, `[{"Key":"k","ModifyIndex":7,"Flags":%d,"Session":"s","Value":%q}]`, uint64(api.LockFlagValue),
			base64.StdEncoding.EncodeToString([]byte(kv.Encode(kv.Record{Signature: "sig", TTL: time.Minute}))))
	})
	rec, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	refuse.Store(true)
	for what, call := range map[string]func() error{
		"create":  func() error { _, err := s.Create(t.Context(), "k", signed("v", time.Minute)); return err },
		"refresh": func() error { _, err := s.Refresh(t.Context(), "k", rec); return err },
		"delete":  func() error { return s.Delete(t.Context(), "k", rec) },
		"get":     func() error { _, err := s.Get(t.Context(), "k"); return err },
		"watch": func() (last error) {
			for _, last = range s.Watch(within(t, time.Minute), "k") {
			}
			return last
		},
	} {
		err := call()
		unknown(t, err)
		require.ErrorContains(t, err, "rate limited: the agent takes no more connections from this address (its limits.http_max_conns_per_client)", what)
	}
}

// Its answer to a connection too many comes at once, often before the request.
func TestARealAgentsRefusalIsToldInWords(t *testing.T) {
	t.Parallel() // it mostly waits
	const limit = 5
	server := startLimited(t, limit)
	host := nextHost()
	s := consulkv.New(dialFrom(t, host, server.Addr(), nil), options)
	taken, letGo := hog(t, host, server.Addr())
	require.Eventually(t, func() bool { return taken() >= limit }, time.Minute, 10*time.Millisecond)
	told := 0
	for range 50 {
		_, err := s.Get(within(t, 10*time.Second), "k")
		if errors.Is(err, kv.ErrVacant) {
			continue // the hog has left one for a moment
		}
		unknown(t, err)
		require.NotContains(t, err.Error(), "%!")
		if strings.Contains(err.Error(), "rate limited") {
			told++
		}
	}
	require.Positive(t, told)
	letGo()
	eventually(t, func() error {
		_, err := s.Get(within(t, 10*time.Second), "k")
		if errors.Is(err, kv.ErrVacant) {
			return nil
		}
		return err
	})
}
