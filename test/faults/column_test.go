//go:build linux

package faults

import (
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// A column is a store, and how it is set up.
type column struct {
	name string
	kind string
	ttl  time.Duration
	// crash is how long at most a leader that is killed keeps others out, if that
	// is not the life of its record.
	crash time.Duration
	// start starts servers of the row's own. Their settings are args, in the form
	// of the server's command line.
	start func(t testing.TB, args ...string) *servers
	// common returns servers that several rows use at once, none of which harms
	// them; nil: each row starts its own.
	common func(t testing.TB) *servers
	// nodes is how many servers there are, each with a part in the decisions;
	// zero: there is no server and no network.
	nodes int
}

func columns() []column {
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
	}
}
