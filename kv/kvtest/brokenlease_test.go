package kvtest_test

import (
	"context"
	"sync"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// The store in memory has no leases, so these play them: a signature is its own
// lease, and backs every safe that it is in.
var leaseBreaches = []breach{
	{
		sentence: "a delete revokes a lease that other records share",
		noticed:  "an heir that gives up its own safe keeps the one handed over",
		open:     func(good *memkv.Store) kv.Store { return revoking(good, true, true) },
	},
	{
		sentence: "the lease of a record handed over is revoked with it",
		noticed:  "an heir that gives up the safe handed over keeps its own",
		open:     func(good *memkv.Store) kv.Store { return revoking(good, false, true) },
	},
	{
		sentence: "a delete looks whether its lease is shared first and revokes it then",
		noticed:  "a hand-over to an heir that gives up meanwhile holds or is refused",
		open: func(good *memkv.Store) kv.Store {
			var shared sync.Map // the safe that was handed over, by signature
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if err == nil {
					shared.Store(next.Signature, name)
				}
				return rec, err
			}, delete: func(ctx context.Context, name string, rec kv.Record) error {
				err := good.Delete(ctx, name, rec)
				if _, ok := shared.Load(rec.Signature); ok || err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				if also, ok := shared.Load(rec.Signature); ok {
					good.Remove(also.(string))
				}
				return nil
			}}
		},
	},
	{
		sentence: "a hand-over takes the heir's record out of its own safe",
		noticed:  "a hand-over leaves the heir's own safe unharmed",
		open: func(good *memkv.Store) kv.Store {
			var safes sync.Map // the first safe of each signature
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				safes.Store(rec.Signature, name)
				return good.Create(ctx, name, rec)
			}, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if own, ok := safes.Load(next.Signature); err == nil && ok && own != name {
					good.Remove(own.(string))
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a hand-over is made to a lease that is gone",
		noticed:  "nothing is handed over to an heir that is gone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if err == nil && !rec.Foreign {
					rec.Lease = rec.Signature
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a hand-over keeps the heir's token",
		noticed:  "a hand-over to an heir replaces the record",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if err == nil && next.Signature != old.Signature && next.Token != 0 {
					rec.Token = next.Token
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a hand-over does not look at the revision",
		noticed:  "a hand-over at an old revision is refused and harms neither safe",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there.Owns(old) && next.Signature != old.Signature {
					old = there
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
}

// revoking deletes with a record every other one of its signature: those that
// were created so, those that were handed over, or both.
func revoking(good *memkv.Store, handedOver, created bool) kv.Store {
	var mu sync.Mutex
	safes := map[string][]string{}
	note := func(signature, name string) {
		mu.Lock()
		defer mu.Unlock()
		safes[signature] = append(safes[signature], name)
	}
	return &broken{
		Store: good,
		create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			got, err := good.Create(ctx, name, rec)
			if err == nil && created {
				note(rec.Signature, name)
			}
			return got, err
		},
		swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
			got, err := good.Swap(ctx, name, old, next)
			if err == nil && handedOver {
				note(next.Signature, name)
			}
			return got, err
		},
		delete: func(ctx context.Context, name string, rec kv.Record) error {
			err := good.Delete(ctx, name, rec)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, name := range safes[rec.Signature] {
				good.Remove(name)
			}
			return nil
		},
	}
}
