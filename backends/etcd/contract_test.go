package etcdkv_test

import (
	"testing"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAStoreKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(testenv.Etcd(t)))
}

func TestAStoreKeepsTheContractOnACluster(t *testing.T) {
	kvtest.Run(t, backend(testenv.StartEtcdCluster(t).Addrs()...))
}

// backend is the servers at addrs, as kvtest wants them.
func backend(addrs ...string) kvtest.Backend {
	var sent count
	return kvtest.Backend{
		Open:     func(t testing.TB) kv.Store { return open(t, &sent, addrs...) },
		Put:      func(t testing.TB, name, value string) { put(t, dial(t, nil, addrs...), name, value) },
		Remove:   func(t testing.TB, name string) { remove(t, dial(t, nil, addrs...), name) },
		Requests: sent.Load,
	}
}
