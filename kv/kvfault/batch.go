package kvfault

import (
	"context"
	"sync"

	"github.com/electkv/election/kv"
)

// Batch returns the store as a [kv.Batch]. To a call for many records happens what is set
// for Refresh: it is one request with one answer, which is lost as a whole. A store within
// that is no batch is asked for each of the records at the same time.
func (s *Store) Batch() kv.Batch { return batch{s} }

type batch struct{ *Store }

// RefreshAll implements [kv.Batch].
func (b batch) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	told := make([]verdict, len(records))
	_, err := b.call(ctx, Refresh, "many", func(ctx context.Context) (kv.Record, error) {
		refreshAll(ctx, b.inner, records, func(i int, rec kv.Record, err error) { told[i] = verdict{rec, err} })
		return kv.Record{}, nil
	})
	for i := range records {
		if err != nil { // what was told comes late, and to nobody
			tell(i, kv.Record{}, err)
			continue
		}
		tell(i, told[i].rec, told[i].err)
	}
}

// A verdict is what became of one record of many.
type verdict struct {
	rec kv.Record
	err error
}

func refreshAll(ctx context.Context, s kv.Store, records []kv.Held, tell func(int, kv.Record, error)) {
	if b, ok := s.(kv.Batch); ok {
		b.RefreshAll(ctx, records, tell)
		return
	}
	var crowd sync.WaitGroup
	for i, r := range records {
		crowd.Go(func() {
			rec, err := s.Refresh(ctx, r.Name, r.Record)
			tell(i, rec, err)
		})
	}
	crowd.Wait()
}
