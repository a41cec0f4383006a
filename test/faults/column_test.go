//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// A column is a store, and how it is set up.
type column struct {
	name string
	kind string
	// observed says that candidates judge when a record has expired. The name is that
	// of the column in which the store does, and observedEnding.
	observed bool
	ttl      time.Duration
	// crash is how long at most a leader that is killed keeps others out, if that
	// is not the life of its record.
	crash time.Duration
	// start starts servers of the row's own. Their settings are args, in the form
	// of the server's command line.
	start func(t testing.TB, args ...string) *servers
	// common returns servers that several rows use at once, none of which harms
	// them; nil: each row starts its own.
	common func(t testing.TB) *servers
	// clock starts servers whose wall clock the row sets; nil: nobody can, or a column
	// with servers like these shows it.
	clock func(t testing.TB, args ...string) *servers
	// brief are the rows of the short choice that are played here, where that is not
	// all of it: a row costs half a minute where there is no machine to spare.
	brief []string
	// nodes is how many servers there are, each with a part in the decisions;
	// zero: there is no server and no network.
	nodes int
}

// observedEnding tells a column in which candidates judge expiry from the one in
// which their store does.
const observedEnding = "-observed"

// base is the name of the column, whoever judges expiry there.
func (c column) base() string { return strings.TrimSuffix(c.name, observedEnding) }

// columns returns those in which the store judges expiry, and then those in which
// candidates do.
func columns() []column {
	all := storeColumns()
	for _, c := range all {
		if brief, ok := observable()[c.name]; ok {
			c.name, c.observed, c.ttl, c.brief = c.name+observedEnding, true, time.Second, brief
			all = append(all, c)
		}
	}
	return all
}

// observable are the columns of which there is one in which candidates judge
// expiry, and what is played there of the short choice.
func observable() map[string][]string {
	return map[string][]string{
		"etcd":   {"04"},
		"consul": {"04"},
		"redis":  {"04", "29a"},

		"postgres": {"29a"},
	}
}

func storeColumns() []column {
	return []column{
		{
			name: "file", kind: kindFile, ttl: time.Second, crash: 300 * time.Millisecond,
			start: func(t testing.TB, _ ...string) *servers { return startFile(t) },
		},
		{
			name: "etcd", kind: kindEtcd, ttl: 2 * time.Second, nodes: 1,
			start:  func(t testing.TB, args ...string) *servers { return alone(testenv.StartEtcd(t, args...)) },
			common: func(t testing.TB) *servers { return shared(testenv.Etcd(t)) },
		},
		{
			name: "etcd3", kind: kindEtcd, ttl: 2 * time.Second, nodes: 3,
			start:  func(t testing.TB, args ...string) *servers { return ofCluster(testenv.StartEtcdCluster(t, args...)) },
			common: func(t testing.TB) *servers { return ofCluster(testenv.StartEtcdCluster(t)) },
		},
		{
			name: "consul", kind: kindConsul, ttl: time.Second, nodes: 1,
			start:  func(t testing.TB, _ ...string) *servers { return alone(testenv.StartConsul(t)) },
			common: func(t testing.TB) *servers { return shared(testenv.Consul(t)) },
		},
		{
			name: "consul3", kind: kindConsul, ttl: time.Second, nodes: 3,
			start:  func(t testing.TB, _ ...string) *servers { return ofCluster(testenv.StartConsulCluster(t)) },
			common: func(t testing.TB) *servers { return ofCluster(testenv.StartConsulCluster(t)) },
		},
		{
			name: "redis", kind: kindRedis, ttl: time.Second, nodes: 1,
			start:  func(t testing.TB, args ...string) *servers { return alone(testenv.StartRedis(t, args...)) },
			common: func(t testing.TB) *servers { return shared(testenv.Redis(t)) },
			clock:  func(t testing.TB, args ...string) *servers { return alone(testenv.StartRedisWithClock(t, args...)) },
		},
		{
			name: "redis-sentinel", kind: kindSentinel, ttl: time.Second, nodes: 1,
			start:  startSentinel,
			common: func(t testing.TB) *servers { return startSentinel(t) },
		},
		{
			name: "redis-cluster", kind: kindCluster, ttl: time.Second, nodes: 1,
			start:  startShards,
			common: func(t testing.TB) *servers { return startShards(t) },
		},
		{
			name: "sqlite", kind: kindSQLite, ttl: time.Second, brief: []string{"01"},
			start: func(t testing.TB, _ ...string) *servers { return startSQLite(t) },
		},
		{
			name: "postgres", kind: kindPostgres, ttl: time.Second, brief: []string{"09"}, nodes: 1,
			start: func(t testing.TB, args ...string) *servers {
				return inPostgres(t, alone(testenv.StartPostgres(t, args...)))
			},
			common: func(t testing.TB) *servers { return inPostgres(t, shared(testenv.Postgres(t))) },
			clock: func(t testing.TB, args ...string) *servers {
				return inPostgres(t, alone(testenv.StartPostgresWithClock(t, args...)))
			},
		},
		{
			name: "mariadb", kind: kindMariaDB, ttl: time.Second, brief: []string{"04"}, nodes: 1,
			start: func(t testing.TB, args ...string) *servers {
				return inMariaDB(t, alone(testenv.StartMariaDB(t, args...)))
			},
			common: func(t testing.TB) *servers { return inMariaDB(t, shared(testenv.MariaDB(t))) },
			clock: func(t testing.TB, args ...string) *servers {
				return inMariaDB(t, alone(testenv.StartMariaDBWithClock(t, args...)))
			},
		},
		{
			name: "paxos", kind: kindPaxos, ttl: peersTTL, brief: []string{"01", "51a"}, nodes: 3,
			start:  func(t testing.TB, _ ...string) *servers { return startPeers(t, upTo(quarantinable), true) },
			common: func(t testing.TB) *servers { return startPeers(t, upTo(time.Minute), true) },
		},
	}
}
