package kvtest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var queueBreaches = []breach{
	{
		sentence: "a store without lines has places in line",
		noticed:  "a store is a queue if it keeps lines, and only then",
		open: func(good *memkv.Store) kv.Store {
			return &brokenQueue{broken: &broken{Store: good}, line: memkv.NewQueue()}
		},
	},
	{
		sentence: "a store without lines says that it keeps them",
		noticed:  "a store is a queue if it keeps lines, and only then",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, life: saying(good, true)}
		},
	},
	{
		sentence: "a store with lines does not say so",
		noticed:  "a store is a queue if it keeps lines, and only then",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{life: saying(good, false)})
		},
	},
	{
		sentence: "a wrapper hides the lines of the store",
		noticed:  "a store is a queue if it keeps lines, and only then",
		line:     func(good *memkv.Queue) kv.Store { return struct{ kv.Store }{good} },
	},
	{
		sentence: "nobody is told to be first",
		noticed:  "to join an empty line is to have the safe",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{stay: func(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
				rec, _, err := good.Stay(ctx, name, rec)
				return rec, false, err
			}})
		},
	},
	{
		sentence: "a delete takes the next in line along",
		noticed:  "a line is served in order",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{delete: func(ctx context.Context, name string, rec kv.Record) error {
				err := good.Delete(ctx, name, rec)
				if next, none := good.Get(ctx, name); err == nil && none == nil {
					err = good.Delete(ctx, name, next)
				}
				return err
			}})
		},
	},
	{
		sentence: "a watch misses the next in line",
		noticed:  "a watch sees a line go by",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, withSightings(&good.Store, func(_ int, rec kv.Record, _ error) bool { return rec.Value == "3" }))
		},
	},
	{
		sentence: "a place is refreshed like a record in the safe",
		noticed:  "a place is not yet in the safe",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec, _, err := good.Stay(ctx, name, rec)
				return rec, err
			}})
		},
	},
	{
		sentence: "to stay does not start the TTL anew",
		noticed:  "a place lasts as long as its owner stays",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{stay: func(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
				place, err := good.Join(ctx, name, rec)
				if err == nil && !place.Owns(rec) {
					_ = good.Delete(ctx, name, place)
					return kv.Record{}, false, kv.ErrStale
				}
				first, _ := good.Get(ctx, name)
				return place, first.Owns(place), err
			}})
		},
	},
	{
		sentence: "a place stays though nobody keeps it",
		noticed:  "a place that nobody keeps leaves the line",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{join: lasting(good.Join)})
		},
	},
	{
		sentence: "the first in line stays though nobody keeps it",
		noticed:  "a first in line that nobody keeps makes room",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{create: lasting(good.Create)})
		},
	},
	{
		sentence: "nobody but the first can leave the line",
		noticed:  "a place can be given up",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{delete: func(ctx context.Context, name string, rec kv.Record) error {
				if first, err := good.Get(ctx, name); err == nil && !first.Foreign && !first.Owns(rec) {
					return kv.ErrStale
				}
				return good.Delete(ctx, name, rec)
			}})
		},
	},
	{
		sentence: "each join takes a place",
		noticed:  "a signature has one place",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{join: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				signature := rec.Signature
				rec.Signature += rand.Text()
				place, err := good.Join(ctx, name, rec)
				place.Signature = signature
				return place, err
			}})
		},
	},
	{
		sentence: "a create waits in line",
		noticed:  "a line that is not empty is not vacant",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{create: good.Join})
		},
	},
	{
		sentence: "an heir jumps the line",
		noticed:  "nobody jumps the line",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if errors.Is(err, kv.ErrStale) && next.Signature != old.Signature && good.Delete(ctx, name, old) == nil {
					return good.Join(ctx, name, next)
				}
				return rec, err
			}})
		},
	},
	{
		sentence: "other programs in line are pushed out of the way",
		noticed:  "others in line are respected",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{stay: func(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
				if first, err := good.Get(ctx, name); err == nil && first.Foreign {
					good.Remove(name)
				}
				return good.Stay(ctx, name, rec)
			}})
		},
	},
	{
		sentence: "whoever has no signature can join",
		noticed:  "a join that cannot be is refused",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{join: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.Signature == "" {
					rec.Signature = rand.Text()
				}
				return good.Join(ctx, name, rec)
			}})
		},
	},
}

// saying says of a store whether candidates wait in line.
func saying(good kv.Store, lines bool) func(time.Duration) (kv.Lifetime, error) {
	return func(ttl time.Duration) (kv.Lifetime, error) {
		life, err := good.Lifetime(ttl)
		life.Queue = lines
		return life, err
	}
}

// lasting makes records that live a hundred times as long as they say.
func lasting(write func(context.Context, string, kv.Record) (kv.Record, error)) func(context.Context, string, kv.Record) (kv.Record, error) {
	return func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
		ttl := rec.TTL
		rec.TTL *= 100
		rec, err := write(ctx, name, rec)
		rec.TTL = min(rec.TTL, max(ttl, time.Nanosecond))
		return rec, err
	}
}
