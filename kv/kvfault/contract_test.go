package kvfault_test

import (
	"testing"
	"testing/synctest"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/kv/kvtest"
)

func TestAStoreWithoutFaultsKeepsTheContract(t *testing.T) {
	for _, c := range kvtest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memkv.NewQueue()
				c.Run(t, kvtest.Backend{
					Open:   func(testing.TB) kv.Store { return kvfault.Wrap(store).Store },
					Put:    func(_ testing.TB, name, value string) { store.Put(name, value) },
					Remove: func(_ testing.TB, name string) { store.Remove(name) },
					Line:   func(_ testing.TB, name, value string) { store.PutLast(name, value) },
				})
			})
		})
	}
}
