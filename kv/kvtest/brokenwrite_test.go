package kvtest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var writeBreaches = []breach{
	{
		sentence: "a refresh is answered without a look at the key",
		noticed:  "a refresh after an operator's removal is refused and brings nothing back",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(_ context.Context, _ string, rec kv.Record) (kv.Record, error) {
				return rec, nil
			}}
		},
	},
	{
		sentence: "a refresh extends whatever record is there",
		noticed:  "a former owner's refreshes do not keep its successor alive",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && !there.Foreign {
					_, _ = good.Refresh(ctx, name, there)
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a refresh looks at the signature alone",
		noticed:  "the same signature comes back under a larger token",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Signature == rec.Signature {
					rec = there
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a refresh brings a record back",
		noticed:  "a refresh of an expired record is refused and brings nothing back",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Refresh(ctx, name, rec)
				if errors.Is(err, kv.ErrStale) {
					return good.Create(ctx, name, rec)
				}
				return got, err
			}}
		},
	},
	{
		sentence: "a refresh changes the revision",
		noticed:  "an owner may refresh and publish at the same time",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec, err := good.Refresh(ctx, name, rec)
				if err != nil {
					return rec, err
				}
				return good.Swap(ctx, name, rec, rec)
			}}
		},
	},
	{
		sentence: "a refresh looks at the revision",
		noticed:  "an owner keeps its record through its own changes",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Revision != rec.Revision {
					return kv.Record{}, kv.ErrStale
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a delete empties the safe whoever holds it",
		noticed:  "the resignation of an old term leaves the new one alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, delete: func(ctx context.Context, name string, _ kv.Record) error {
				good.Remove(name)
				return nil
			}}
		},
	},
	{
		sentence: "a delete looks at the revision",
		noticed:  "an owner may delete while it publishes",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, delete: func(ctx context.Context, name string, rec kv.Record) error {
				if there, err := good.Get(ctx, name); err == nil && there.Revision != rec.Revision {
					return kv.ErrStale
				}
				return good.Delete(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a delete of nothing succeeds",
		noticed:  "a record is deleted once",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, delete: func(ctx context.Context, name string, rec kv.Record) error {
				if _, err := good.Get(ctx, name); errors.Is(err, kv.ErrVacant) {
					return nil
				}
				return good.Delete(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a delete forgets to delete",
		noticed:  "a deleted record makes room before its TTL has passed",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, delete: func(ctx context.Context, name string, rec kv.Record) error {
				_, err := good.Refresh(ctx, name, rec)
				return err
			}}
		},
	},
	{
		sentence: "a swap ignores the revision",
		noticed:  "a swap at an old revision is refused",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Owns(old) {
					old = there
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a swap ignores signature and token",
		noticed:  "a swap of what the safe does not hold is refused",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Revision == old.Revision && !old.Foreign {
					old = there
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a swap fills a vacant safe",
		noticed:  "a vacant safe refuses swap, refresh and delete",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if _, err := good.Get(ctx, name); errors.Is(err, kv.ErrVacant) {
					return good.Create(ctx, name, next)
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a publication comes under a new token",
		noticed:  "publishing changes value and revision alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if err != nil {
					return rec, err
				}
				good.Remove(name)
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a publication that changes nothing is refused",
		noticed:  "publishing the same value again does no harm",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if old == next {
					return kv.Record{}, kv.ErrStale
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a swap looks first and writes then",
		noticed:  "one of many swaps at a revision wins",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				there, err := good.Get(ctx, name)
				if err != nil || there.Revision != old.Revision || !there.Owns(old) {
					return good.Swap(ctx, name, old, next)
				}
				time.Sleep(time.Millisecond)
				if there, err = good.Get(ctx, name); err != nil || there.Foreign {
					return kv.Record{}, kv.ErrStale
				}
				return good.Swap(ctx, name, there, next)
			}}
		},
	},
	{
		sentence: "a refresh looks first and writes then",
		noticed:  "an owner and a usurper are never both right",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Refresh(ctx, name, rec)
				if errors.Is(err, kv.ErrStale) {
					if there, err := good.Get(ctx, name); err == nil && there.Value == "usurped" {
						return rec, nil
					}
				}
				return got, err
			}}
		},
	},
	{
		sentence: "a delete takes other safes along",
		noticed:  "a record leaves other safes alone",
		open: func(good *memkv.Store) kv.Store {
			var used sync.Map
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				used.Store(name, true)
				return good.Create(ctx, name, rec)
			}, delete: func(ctx context.Context, name string, rec kv.Record) error {
				err := good.Delete(ctx, name, rec)
				if err == nil {
					used.Range(func(other, _ any) bool { good.Remove(other.(string)); return true })
				}
				return err
			}}
		},
	},
}
