package kvtest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// A Verdict is what [kv.Batch.RefreshAll] tells of one record.
type Verdict struct {
	Record kv.Record
	Err    error
}

// RefreshAll has the store refresh the records in one call, and returns what it tells of
// each. It fails t unless each is told of once, and while the call lasts. It is for an
// adapter's own tests of batches.
func RefreshAll(t testing.TB, ctx context.Context, store kv.Batch, records []kv.Held) []Verdict { //nolint:revive // t comes first, as in package require
	t.Helper()
	var mu sync.Mutex
	returned := false
	told, times := make([]Verdict, len(records)), make([]int, len(records))
	store.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if returned || i < 0 || i >= len(records) {
			t.Errorf("told of record %d of %d; the call had returned: %v", i, len(records), returned)
			return
		}
		told[i] = Verdict{rec, err}
		times[i]++
	})
	mu.Lock()
	defer mu.Unlock()
	returned = true
	for i, n := range times {
		require.Equal(t, 1, n, "how often it was told of record %d, %.80q", i, records[i].Name)
	}
	return told
}
