//go:build unix

package consulkv_test

import (
	"testing"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAStoreOnOneServerKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, options, testenv.Consul(t)))
}

func TestAStoreOnAClusterKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, options, cluster(t).Addrs()...))
}

func TestAStoreOfPlainValuesKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, plain, testenv.Consul(t)))
}

func TestAStoreOfPlainValuesOnAClusterKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, plain, cluster(t).Addrs()...))
}

// cluster is a Consul cluster with the timing of production: it keeps its leader on a
// busy machine. What becomes of a store that loses it, the fault table tells.
func cluster(t *testing.T) *testenv.Cluster {
	return testenv.StartConsulCluster(t, map[string]any{"performance": map[string]any{"raft_multiplier": 5}})
}

// backend opens its clients at the addresses in turn.
func backend(t *testing.T, opts *consulkv.Options, addrs ...string) kvtest.Backend {
	open, count := dialEach(addrs)
	others := operator{dial(t, addrs[0])}
	store := func(t testing.TB) kv.Store { return consulkv.New(open(t), opts) }
	return kvtest.Backend{Open: store, TTL: ttl, Put: others.put, Remove: others.remove, Requests: count}
}
