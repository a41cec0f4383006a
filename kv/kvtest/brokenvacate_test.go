package kvtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var vacateBreaches = []breach{
	{
		sentence: "a safe is vacated by a store that says that it cannot",
		noticed:  "a store that vacates nothing in one step says so",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, _ string) (kv.Record, error) {
				if err := good.Delete(ctx, name, rec); err != nil {
					return kv.Record{}, err
				}
				return kv.Record{}, errors.ErrUnsupported
			})
		},
	},
	{
		sentence: "a safe that is vacated in one step still holds its record",
		noticed:  "a safe is vacated in one step if there is no heir",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				heir, err := good.Get(ctx, place)
				if err == nil {
					return heir, kv.ErrHeld
				}
				_, err = good.Refresh(ctx, name, rec)
				return kv.Record{}, err
			})
		},
	},
	{
		sentence: "a safe is vacated in one step under the eyes of an heir",
		noticed:  "a safe is not vacated in one step while there is an heir",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				heir, err := good.Vacate(ctx, name, rec, place)
				if errors.Is(err, kv.ErrHeld) && !heir.Foreign {
					_ = good.Delete(ctx, name, rec)
				}
				return heir, err
			})
		},
	},
	{
		sentence: "a vacate passes by somebody else's lock",
		noticed:  "a safe is not vacated in one step while somebody else's lock is in the heir's",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				heir, err := good.Vacate(ctx, name, rec, place)
				if errors.Is(err, kv.ErrHeld) && heir.Foreign {
					return kv.Record{}, good.Delete(ctx, name, rec)
				}
				return heir, err
			})
		},
	},
	{
		sentence: "a vacate is refused for an heir that was there once",
		noticed:  "a safe is vacated in one step once the heir has faded",
		open: func(good *memkv.Store) kv.Store {
			var short sync.Map // the safes
			b := vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				if _, once := short.Load(place); once {
					return kv.Record{Signature: "it was there"}, kv.ErrHeld
				}
				return good.Vacate(ctx, name, rec, place)
			})
			b.create = func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.TTL <= time.Second {
					short.Store(name, true)
				}
				return good.Create(ctx, name, rec)
			}
			return b
		},
	},
	{
		sentence: "a vacate empties the safe, whatever it holds",
		noticed:  "what the safe does not hold is not vacated in one step",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				if now, err := good.Get(ctx, name); err == nil {
					rec = now
				}
				return good.Vacate(ctx, name, rec, place)
			})
		},
	},
	{
		sentence: "a vacate is a look and then a delete",
		noticed:  "a safe is vacated in one step before an heir comes or not at all",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				heir, err := good.Get(ctx, place)
				if err == nil {
					return heir, fmt.Errorf("%w", kv.ErrHeld)
				}
				for range 100 {
					runtime.Gosched()
				}
				time.Sleep(time.Millisecond)
				return kv.Record{}, good.Delete(ctx, name, rec)
			})
		},
	},
	{
		sentence: "a vacate takes no notice of its context",
		noticed:  "a vacate whose context has ended returns promptly",
		open: func(good *memkv.Store) kv.Store {
			return vacating(good, func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
				return good.Vacate(context.WithoutCancel(ctx), name, rec, place)
			})
		},
	},
}

// vacating is a good store that vacates in one step as it is told here.
func vacating(good *memkv.Store, do func(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error)) *broken {
	return &broken{Store: good, vacate: do}
}

func TestAStoreThatVacatesNothingSkipsTheCases(t *testing.T) {
	b, store := memory(memkv.New()), memkv.New()
	b.Open = func(testing.TB) kv.Store { return struct{ kv.Store }{store} }
	requireSkipped(t, b, vacateBreaches, 7)
}
