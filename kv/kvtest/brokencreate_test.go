package kvtest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var createBreaches = []breach{
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
		noticed:  "create uses signature, value, note and TTL alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				got.Token = max(got.Token, rec.Token)
				return got, err
			}}
		},
	},
	{
		sentence: "a create returns what it was asked for with the record",
		noticed:  "create uses signature, value, note and TTL alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				got.Shared = rec.Shared
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
}
