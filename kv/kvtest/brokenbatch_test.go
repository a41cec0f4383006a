package kvtest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// A tell is how a batch says what became of a record.
type tell = func(i int, rec kv.Record, err error)

// A clerk is a good store that refreshes many records as it is told here, and one by one
// if it is not.
type clerk struct {
	*memkv.Store
	all func(ctx context.Context, records []kv.Held, tell tell)
}

func (c *clerk) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	if c.all != nil {
		c.all(ctx, records, tell)
		return
	}
	oneByOne(ctx, c.Store, records, tell)
}

func oneByOne(ctx context.Context, s kv.Store, records []kv.Held, tell tell) {
	for i, r := range records {
		rec, err := s.Refresh(ctx, r.Name, r.Record)
		tell(i, rec, err)
	}
}

// filing is a store whose batches are wrong.
func filing(all func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell)) func(*memkv.Store) kv.Store {
	return func(good *memkv.Store) kv.Store {
		return &clerk{good, func(ctx context.Context, records []kv.Held, tell tell) { all(ctx, good, records, tell) }}
	}
}

// each is a store whose batches make something else of each verdict.
func each(wrong func(r kv.Held, rec kv.Record, err error) (kv.Record, error)) func(*memkv.Store) kv.Store {
	return filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
		oneByOne(ctx, good, records, func(i int, rec kv.Record, err error) {
			rec, err = wrong(records[i], rec, err)
			tell(i, rec, err)
		})
	})
}

var batchBreaches = []breach{
	{
		sentence: "a batch forgets what does not fit into a request",
		noticed:  "a batch refreshes each record",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records[:min(len(records), 128)], tell)
		}),
	},
	{
		sentence: "a batch tells of the first record twice",
		noticed:  "a batch refreshes each record",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records, tell)
			oneByOne(ctx, good, records[:min(len(records), 1)], tell)
		}),
	},
	{
		sentence: "a batch mixes its verdicts up",
		noticed:  "a batch has a verdict for each record",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records, func(i int, rec kv.Record, err error) { tell(len(records)-1-i, rec, err) })
		}),
	},
	{
		sentence: "a batch looks at its records and refreshes the first alone",
		noticed:  "a batch starts each TTL anew",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			for i, r := range records {
				now, err := good.Get(ctx, r.Name)
				if i == 0 || err != nil || !now.Owns(r.Record) {
					now, err = good.Refresh(ctx, r.Name, r.Record)
				}
				tell(i, now, err)
			}
		}),
	},
	{
		sentence: "a batch publishes what it refreshes",
		noticed:  "a batch changes nothing that a reader sees",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records, func(i int, rec kv.Record, err error) {
				if err == nil {
					_, err = good.Swap(ctx, records[i].Name, rec, rec)
				}
				tell(i, rec, err)
			})
		}),
	},
	{
		sentence: "a batch returns the records as they were given",
		noticed:  "a batch returns what was published since",
		open: each(func(r kv.Held, rec kv.Record, err error) (kv.Record, error) {
			if err == nil {
				rec = r.Record
			}
			return rec, err
		}),
	},
	{
		sentence: "a batch signs those anew that may share",
		noticed:  "a record that may share is the same record as before",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records, func(i int, rec kv.Record, err error) {
				if records[i].Share {
					rec.Token++
				}
				tell(i, rec, err)
			})
		}),
	},
	{
		sentence: "a batch keeps alive what has ever shared",
		noticed:  "a record that may share and was left behind fades",
		open: func(good *memkv.Store) kv.Store {
			shared := make(map[string]kv.Held)
			return filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
				oneByOne(ctx, good, records, tell)
				for _, r := range records {
					if r.Share {
						shared[r.Name] = r
					}
				}
				for _, r := range shared {
					_, _ = good.Refresh(ctx, r.Name, r.Record)
				}
			})(good)
		},
	},
	{
		sentence: "a batch that succeeds for one record succeeds for all",
		noticed:  "a batch tells of each record that was removed, wherever it is",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			succeeded := false
			verdicts := make([]error, len(records))
			oneByOne(ctx, good, records, func(i int, _ kv.Record, err error) {
				verdicts[i], succeeded = err, succeeded || err == nil
			})
			for i, r := range records {
				if succeeded {
					tell(i, r.Record, nil)
					continue
				}
				tell(i, kv.Record{}, verdicts[i])
			}
		}),
	},
	{
		sentence: "a batch that fails for one record fails for all",
		noticed:  "a batch tells of each record that was removed, wherever it is",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			var failed error
			all := make([]kv.Record, len(records))
			oneByOne(ctx, good, records, func(i int, rec kv.Record, err error) {
				all[i], failed = rec, errors.Join(failed, err)
			})
			for i, rec := range all {
				if failed != nil {
					rec = kv.Record{}
				}
				tell(i, rec, failed)
			}
		}),
	},
	{
		sentence: "a batch of nothing waits for something",
		noticed:  "a batch of nothing returns",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			if len(records) == 0 {
				tell(0, kv.Record{}, nil)
			}
			oneByOne(ctx, good, records, tell)
		}),
	},
	{
		sentence: "a batch does not look at its context",
		noticed:  "a batch whose context has ended refreshes nothing and says so",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(context.WithoutCancel(ctx), good, records, tell)
		}),
	},
	{
		sentence: "a batch that comes while another is at work is told what that is told",
		noticed:  "batches side by side tell each its own",
		open: func(good *memkv.Store) kv.Store {
			var busy atomic.Bool
			return &clerk{good, func(ctx context.Context, records []kv.Held, tell tell) {
				if !busy.CompareAndSwap(false, true) {
					for i := range records {
						tell(i, kv.Record{}, errors.New("another batch is at work"))
					}
					return
				}
				defer busy.Store(false)
				time.Sleep(time.Millisecond)
				oneByOne(ctx, good, records, tell)
			}}
		},
	},
	doubly(),
	{
		sentence: "a batch leaves a goroutine that waits for its context",
		noticed:  "batches leave no goroutines behind",
		open: filing(func(ctx context.Context, good *memkv.Store, records []kv.Held, tell tell) {
			oneByOne(ctx, good, records, tell)
			for range 5 {
				go time.Sleep(time.Minute)
			}
		}),
	},
}

// doubly is of a store whose batches cost more than they spare.
func doubly() breach {
	var sent atomic.Int64
	return breach{
		sentence: "a batch asks for each record twice",
		noticed:  "a batch costs no more requests than its records one by one",
		open:     func(good *memkv.Store) kv.Store { return &postman{good, &sent} },
		requests: sent.Load,
	}
}

// A postman counts the refreshes that he carries.
type postman struct {
	*memkv.Store
	sent *atomic.Int64
}

func (p *postman) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	p.sent.Add(1)
	return p.Store.Refresh(ctx, name, rec)
}

func (p *postman) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	oneByOne(ctx, p, records, func(int, kv.Record, error) {})
	oneByOne(ctx, p, records, tell)
}

func TestAStoreThatIsNoBatchIsNotAskedToBeOne(t *testing.T) {
	requireSkipped(t, memory(memkv.New()), batchBreaches, 13)
}

func TestAGoodBatchPasses(t *testing.T) {
	b := memory(memkv.New())
	store := b.Open(t).(*memkv.Store)
	b.Open = func(testing.TB) kv.Store { return &clerk{Store: store} }
	kvtest.Run(t, b)
}
