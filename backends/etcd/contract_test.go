package etcdkv_test

import (
	"crypto/rand"
	"testing"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAStoreKeepsTheContract(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		kvtest.Run(t, backend(options, testenv.Etcd(t)))
	})
}

// The two between them have all code that the others have.
func TestAStoreKeepsTheContractOnACluster(t *testing.T) {
	testenv.Long(t)
	addrs := testenv.StartEtcdCluster(t).Addrs()
	for _, options := range []layout{{}, queues()[1]} {
		t.Run(title(options), func(t *testing.T) {
			kvtest.Run(t, backend(options, addrs...))
		})
	}
}

// backend is the servers at addrs, as kvtest wants them.
func backend(options layout, addrs ...string) kvtest.Backend {
	var sent count
	b := kvtest.Backend{
		Open:     func(t testing.TB) kv.Store { return openWith(t, &sent, options, addrs...) },
		Put:      func(t testing.TB, name, value string) { putOver(t, dial(t, nil, addrs...), options, name, value) },
		Remove:   func(t testing.TB, name string) { removeAll(t, dial(t, nil, addrs...), options, name) },
		Requests: sent.Load,
	}
	if options.queue {
		b.Line = func(t testing.TB, name, value string) { put(t, dial(t, nil, addrs...), name+"/"+rand.Text(), value) }
	}
	return b
}
