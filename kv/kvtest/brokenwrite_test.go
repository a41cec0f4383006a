package kvtest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
		sentence: "a takeover keeps the token",
		noticed:  "a takeover replaces the record",
		open: func(good *memkv.Store) kv.Store {
			return withTokens(good, func(token uint64) uint64 { return 1 })
		},
	},
	{
		sentence: "tokens start anew with each owner",
		noticed:  "tokens grow across deletes",
		open: func(good *memkv.Store) kv.Store {
			return withTokens(good, func(token uint64) uint64 { return token%3 + 1 })
		},
	},
	{
		sentence: "a create takes its own record again",
		noticed:  "a held safe does not take its own record again",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Signature == rec.Signature {
					return there, nil
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a create overwrites",
		noticed:  "a held safe takes no other record",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && !there.Foreign && rec.TTL > 0 && rec.Signature != "" {
					good.Remove(name)
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a create writes the signature first and the value then",
		noticed:  "a create that was cut short can be adopted",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				value := rec.Value
				rec.Value = ""
				rec, err := good.Create(ctx, name, rec)
				if err != nil {
					return rec, err
				}
				time.Sleep(time.Millisecond)
				next := rec
				next.Value = value
				return good.Swap(ctx, name, rec, next)
			}}
		},
	},
	{
		sentence: "a create trusts the caller's token",
		noticed:  "create uses signature, value and TTL alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				got.Token = max(got.Token, rec.Token)
				return got, err
			}}
		},
	},
	{
		sentence: "a create looks first and writes then",
		noticed:  "one of many creates wins",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if _, err := good.Get(ctx, name); !errors.Is(err, kv.ErrVacant) {
					return good.Create(ctx, name, rec)
				}
				time.Sleep(time.Millisecond)
				good.Remove(name)
				return good.Create(ctx, name, rec)
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
	{
		sentence: "a client refreshes only what it created itself",
		noticed:  "a record read back is as good as the one that was returned",
		each:     true,
		open: func(good *memkv.Store) kv.Store {
			var mine sync.Map
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				mine.Store(name, true)
				return good.Create(ctx, name, rec)
			}, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if _, ok := mine.Load(name); !ok {
					return kv.Record{}, kv.ErrStale
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "reads come from a cache",
		noticed:  "a read shows every write that returned before",
		open: func(good *memkv.Store) kv.Store {
			var cache sync.Map
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if before, ok := cache.Swap(name, rec); ok && err == nil && before != (kv.Record{}) {
					return before.(kv.Record), nil
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a safe that nobody used is not vacant but an error",
		noticed:  "a safe that nobody ever used is vacant",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if errors.Is(err, kv.ErrVacant) {
					err = errors.New("no such key")
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a store forgets what its client knew when it restarts",
		noticed:  "tokens grow across restarts of the client",
		each:     true,
		open: func(good *memkv.Store) kv.Store {
			var first atomic.Uint64
			return withTokens(good, func(token uint64) uint64 {
				first.CompareAndSwap(0, token)
				return token - first.Load() + 1
			})
		},
	},
}

// withTokens shows another token for each of the good store's. It does not look
// at the tokens that it is given.
func withTokens(good *memkv.Store, show func(uint64) uint64) kv.Store {
	shown := func(rec kv.Record, err error) (kv.Record, error) {
		if err == nil && !rec.Foreign {
			rec.Token = show(rec.Token)
		}
		return rec, err
	}
	real := func(ctx context.Context, name string, rec kv.Record) kv.Record {
		there, err := good.Get(ctx, name)
		if err == nil && there.Signature == rec.Signature && show(there.Token) == rec.Token {
			rec.Token = there.Token
		}
		return rec
	}
	return &broken{
		Store: good,
		create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			return shown(good.Create(ctx, name, rec))
		},
		get: func(ctx context.Context, name string) (kv.Record, error) {
			return shown(good.Get(ctx, name))
		},
		swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
			return shown(good.Swap(ctx, name, real(ctx, name, old), next))
		},
		refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			return shown(good.Refresh(ctx, name, real(ctx, name, rec)))
		},
		delete: func(ctx context.Context, name string, rec kv.Record) error {
			return good.Delete(ctx, name, real(ctx, name, rec))
		},
	}
}
