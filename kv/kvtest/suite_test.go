package kvtest_test

import (
	"testing"
	"testing/synctest"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAGoodStorePassesInRealTime(t *testing.T) {
	kvtest.Run(t, memory(memkv.New()))
}

func TestAGoodStorePassesInFakeTime(t *testing.T) {
	for _, c := range kvtest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, memory(memkv.New())) })
		})
	}
}

// memory is a backend all of whose clients share store.
func memory(store *memkv.Store) kvtest.Backend {
	return kvtest.Backend{
		Open:   func(testing.TB) kv.Store { return store },
		Put:    func(_ testing.TB, name, value string) { store.Put(name, value) },
		Remove: func(_ testing.TB, name string) { store.Remove(name) },
	}
}
