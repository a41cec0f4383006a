package etcdkv_test

import (
	"testing"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAnObservedStoreKeepsTheContract(t *testing.T) {
	var sent count
	addr := testenv.Etcd(t)
	kvtest.Run(t, kvtest.Backend{
		Open:     func(t testing.TB) kv.Store { return observed(t, &sent, addr) },
		Put:      func(t testing.TB, name, value string) { put(t, dial(t, nil, addr), name, value) },
		Remove:   func(t testing.TB, name string) { remove(t, dial(t, nil, addr), name) },
		Requests: sent.Load,
	})
}

// observed returns an observed store with a client of its own.
func observed(t testing.TB, sent *count, addrs ...string) *etcdkv.Observed {
	t.Helper()
	return etcdkv.NewObserved(dial(t, sent, addrs...), &etcdkv.ObservedOptions{Prefix: prefix})
}
