package kvtest_test

import (
	"testing"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAGoodStorePassesInRealTime(t *testing.T) {
	kvtest.Run(t, memory(memkv.New()))
}

// memory is a backend all of whose clients share store.
func memory(store *memkv.Store) kvtest.Backend {
	return kvtest.Backend{
		Open:   func(testing.TB) kv.Store { return store },
		Put:    func(_ testing.TB, name, value string) { store.Put(name, value) },
		Remove: func(_ testing.TB, name string) { store.Remove(name) },
	}
}
