//go:build unix

package consulkv_test

import (
	"testing"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAnObservedStoreKeepsTheContract(t *testing.T) {
	addr := testenv.Consul(t)
	open, count := dialEach([]string{addr})
	others := operator{dial(t, addr)}
	store := func(t testing.TB) kv.Store { return consulkv.NewObserved(open(t), nil) }
	kvtest.Run(t, kvtest.Backend{Open: store, TTL: ttl, Put: others.put, Remove: others.remove, Requests: count})
}
