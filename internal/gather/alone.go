package gather

import "github.com/electkv/election/kv"

// fewAlone is how many refreshes of a process go alone to one store at a time.
const fewAlone = 32

// The refreshes that go alone, by store.
var alone = make(map[kv.Batch]int) //nolint:gochecknoglobals // guarded by mu

// Alone reports whether a refresh may go alone. One that has failed with others does, since what
// ails them may spare it; but where a store has failed thousands, each of them alone would be too much
// for it, and for the refreshes that come in their turn. Call leave when it has been answered.
func Alone(store kv.Batch) (leave func(), ok bool) {
	mu.Lock()
	defer mu.Unlock()
	if alone[store] >= fewAlone {
		return nil, false
	}
	alone[store]++
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if alone[store]--; alone[store] == 0 {
			delete(alone, store)
		}
	}, true
}
