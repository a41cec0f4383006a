package memkv_test

import (
	"testing"
	"testing/synctest"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	keepsTheContract(t, func() kvtest.Backend { return backend(memkv.New()) })
}

func TestAStoreWithLinesKeepsTheContract(t *testing.T) {
	keepsTheContract(t, func() kvtest.Backend {
		store := memkv.NewQueue()
		b := backend(&store.Store)
		b.Open = func(testing.TB) kv.Store { return store }
		b.Line = func(_ testing.TB, name, value string) { store.PutLast(name, value) }
		return b
	})
}

func keepsTheContract(t *testing.T, make func() kvtest.Backend) {
	for _, c := range kvtest.Cases() {
		if c.Fits(make()) {
			t.Run(c.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.Run(t, make()) })
			})
		}
	}
}

func backend(store *memkv.Store) kvtest.Backend {
	return kvtest.Backend{
		Open:   func(testing.TB) kv.Store { return store },
		Put:    func(_ testing.TB, name, value string) { store.Put(name, value) },
		Remove: func(_ testing.TB, name string) { store.Remove(name) },
	}
}
