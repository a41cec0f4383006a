package observer_test

import (
	"testing"
	"testing/synctest"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/observer/memregister"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	for _, c := range kvtest.Cases() {
		b := backend()
		if !c.Fits(b) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, backend()) })
		})
	}
}

// In each client the store's memory is its own, as it is in each process.
func backend() kvtest.Backend {
	reg := memregister.New()
	return kvtest.Backend{
		Open: func(testing.TB) kv.Store {
			return observer.New(reg, &observer.Options{Clock: memregister.Clock()})
		},
		Put:      func(_ testing.TB, name, value string) { reg.Overwrite(name, value) },
		Remove:   func(_ testing.TB, name string) { reg.Empty(name) },
		Requests: func() int64 { return int64(reg.Requests()) },
	}
}
