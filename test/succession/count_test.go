//go:build unix

package succession_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A counted is a server of the test's own that says how many requests of each
// sort it has got.
type counted struct {
	name     string
	dial     func() kv.Store // with a client of its own
	counts   func() tally    // since the server started
	requests []string        // the sorts that clients send; nil if all are
	writes   []string        // the sorts that change something
	polls    []string        // the sorts that those who wait send now and then
}

// sent returns how many of the requests in a tally clients have sent.
func (c counted) sent(t tally) int {
	if c.requests == nil {
		return t.of(slices.Collect(maps.Keys(t))...)
	}
	return t.of(c.requests...)
}

// A tally is a number of requests by their sorts, as the server calls them.
type tally map[string]int

// less returns what has been added since before.
func (t tally) less(before tally) tally {
	diff := tally{}
	for sort, n := range t {
		if n != before[sort] {
			diff[sort] = n - before[sort]
		}
	}
	return diff
}

func (t tally) of(sorts ...string) (n int) {
	for _, s := range sorts {
		n += t[s]
	}
	return n
}

func (t tally) String() string {
	texts := []string{}
	for _, sort := range slices.Sorted(maps.Keys(t)) {
		texts = append(texts, fmt.Sprintf("%d %s", t[sort], sort))
	}
	return strings.Join(texts, ", ")
}

// rare is a Backstop beyond every test: what a handover costs shall not be mixed
// with the looks that waiting costs now and then.
const rare = time.Hour

// countedServers are the kinds of servers that can be asked.
func countedServers() map[string]func(testing.TB) counted {
	return map[string]func(testing.TB) counted{"etcd": countedEtcd, "consul": countedConsul, "redis": countedRedis}
}

// etcd counts what its gRPC server receives: calls, and messages on streams.
func countedEtcd(t testing.TB) counted {
	addr := testenv.StartEtcd(t).Addr()
	received := regexp.MustCompile(`^grpc_server_msg_received_total\{grpc_method="(\w+)",grpc_service="etcdserverpb\.\w+",.*\} (\S+)$`)
	return counted{
		name:   "etcd",
		dial:   func() kv.Store { return etcdkv.New(dialEtcd(t, addr), &etcdkv.Options{Backstop: rare}) },
		counts: func() tally { return scrape(t, "http://"+addr+"/metrics", received) },
		writes: []string{"Txn", "LeaseGrant", "LeaseRevoke"},
	}
}

// Consul counts the requests that its HTTP server has answered: a blocking query
// when it ends.
func countedConsul(t testing.TB) counted {
	addr := testenv.StartConsul(t, map[string]any{
		"telemetry": map[string]any{"prometheus_retention_time": "1h"},
		"limits":    map[string]any{"http_max_conns_per_client": 10000}, // each watch holds one
	}).Addr()
	answered := regexp.MustCompile(`^consul_api_http_count\{method="(\w+",path="v1_(?:kv|txn|session)\w*)"\} (\S+)$`)
	return counted{
		name: "consul",
		dial: func() kv.Store {
			return consulkv.New(dialConsul(t, addr), &consulkv.Options{MinTTL: time.Second, Backstop: 9 * time.Minute})
		},
		counts: func() tally {
			found := tally{}
			for sort, n := range scrape(t, "http://"+addr+"/v1/agent/metrics?format=prometheus", answered) {
				found[strings.ReplaceAll(sort, `",path="v1_`, " ")] = n
			}
			return found
		},
		writes: []string{"PUT txn", "PUT session_create", "PUT session_destroy_"},
		polls:  []string{"GET kv_"}, // of the watches that take turns on a client's connections
	}
}

// Redis counts commands. Those that clients send are the scripts, and what
// subscriptions take. A script that changes a record does one of the writes.
func countedRedis(t testing.TB) counted {
	addr := testenv.StartRedis(t).Addr()
	eye := dialRedis(t, addr)
	return counted{
		name:     "redis",
		dial:     func() kv.Store { return rediskv.New(dialRedis(t, addr), &rediskv.Options{Backstop: rare}) },
		counts:   func() tally { return commands(t, eye) },
		requests: []string{"evalsha", "eval", "subscribe", "unsubscribe"},
		writes:   []string{"set", "del", "pexpireat"},
	}
}

// scrape returns what a server publishes about itself in lines that match: the
// sort and the number.
func scrape(t testing.TB, url string, line *regexp.Regexp) tally {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(text))
	found := tally{}
	for l := range strings.Lines(string(text)) {
		if m := line.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			n, err := strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
			found[m[1]] += int(n)
		}
	}
	require.NotEmpty(t, found, "no such lines at %s", url)
	return found
}

var commandLine = regexp.MustCompile(`^cmdstat_([\w|]+):calls=(\d+),`)

func commands(t testing.TB, client *redis.Client) tally {
	t.Helper()
	text, err := client.Info(context.Background(), "commandstats").Result()
	require.NoError(t, err)
	found := tally{}
	for l := range strings.Lines(text) {
		if m := commandLine.FindStringSubmatch(l); m != nil {
			n, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			found[m[1]] += n
		}
	}
	return found
}
