package kvtest_test

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var foreignBreaches = []breach{
	{
		sentence: "a create overwrites a foreign record",
		noticed:  "a foreign record holds the safe",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Foreign {
					good.Remove(name)
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a create overwrites a record from the future",
		noticed:  "a record from the future is foreign",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Foreign && len(there.Value) > 14 && there.Value[:14] == `{"election":2,` {
					good.Remove(name)
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a foreign record is taken for a vacant safe",
		noticed:  "a foreign record is reported as one",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if err == nil && rec.Foreign {
					return kv.Record{}, kv.ErrVacant
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a delete removes a foreign record",
		noticed:  "a foreign record cannot be swapped, refreshed or deleted",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, delete: func(ctx context.Context, name string, rec kv.Record) error {
				if rec.Foreign && name != "" {
					good.Remove(name)
					return nil
				}
				return good.Delete(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a foreign record can be an heir",
		noticed:  "nothing is handed over to a foreign record",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Foreign {
					next.Foreign, next.Signature, next.TTL = false, next.Value, old.TTL
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "an owner puts its record back over a foreign one",
		noticed:  "an owner whose record was overwritten has lost it",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Foreign && !rec.Foreign {
					good.Remove(name)
					return good.Create(ctx, name, rec)
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "an expiry takes a foreign record along",
		noticed:  "a foreign record outlives the record that it overwrote",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				if err == nil {
					time.AfterFunc(got.TTL, func() {
						if there, err := good.Get(context.Background(), name); err == nil && there.Foreign {
							good.Remove(name)
						}
					})
				}
				return got, err
			}}
		},
	},
	{
		sentence: "a token is drawn from the record that was there",
		noticed:  "tokens grow across foreign records",
		open: func(good *memkv.Store) kv.Store {
			return withTokens(good, func(uint64) uint64 { return 1 })
		},
	},
	{
		sentence: "an error other than ErrHeld comes from a foreign record",
		noticed:  "a foreign record holds the safe",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Foreign {
					return kv.Record{}, errors.New("not a record")
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
}
