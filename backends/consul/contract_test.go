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
	kvtest.Run(t, backend(t, options, testenv.StartConsulCluster(t).Addrs()...))
}

func TestAStoreOfPlainValuesKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, plain, testenv.Consul(t)))
}

func TestAStoreOfPlainValuesOnAClusterKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, plain, testenv.StartConsulCluster(t).Addrs()...))
}

// backend opens its clients at the addresses in turn.
func backend(t *testing.T, opts *consulkv.Options, addrs ...string) kvtest.Backend {
	open, count := dialEach(addrs)
	others := operator{dial(t, addrs[0])}
	store := func(t testing.TB) kv.Store { return consulkv.New(open(t), opts) }
	return kvtest.Backend{Open: store, TTL: ttl, Put: others.put, Remove: others.remove, Requests: count}
}
