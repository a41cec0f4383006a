package history

import (
	"context"

	"github.com/electkv/election/kv"
)

// A batch is the view of a store that refreshes many records at once. Each of them is noted
// as a refresh.
type batch struct {
	view *observed
	all  kv.Batch
}

// RefreshAll implements [kv.Batch].
func (b batch) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	calls := make([]call, len(records))
	for i, r := range records {
		_, calls[i] = b.view.send(ctx, r.Name, OpRefresh, r.Record, "")
	}
	b.all.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		calls[i].answer(rec, err)
		tell(i, rec, err)
	})
}
