package kvtest_test

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var contextBreaches = []breach{
	{
		sentence: "a write does not look at its context",
		noticed:  "an operation whose context was cancelled returns promptly",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				return good.Create(context.WithoutCancel(ctx), name, rec)
			}}
		},
	},
	{
		sentence: "a read that runs out of time calls the safe vacant",
		noticed:  "an operation whose deadline has passed returns promptly",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				if ctx.Err() != nil {
					return kv.Record{}, errors.Join(kv.ErrVacant, ctx.Err())
				}
				return good.Get(ctx, name)
			}}
		},
	},
	{
		sentence: "the end of a context is told in words alone",
		noticed:  "an operation tells of the cause or the error of its context",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if ctx.Err() != nil {
					return kv.Record{}, errors.New(ctx.Err().Error())
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a call that was cancelled spoils the client",
		noticed:  "what a cancelled context has left behind can be used",
		open: func(good *memkv.Store) kv.Store {
			spoilt := false
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				select {
				case <-ctx.Done():
					spoilt = true
					return kv.Record{}, ctx.Err()
				case <-time.After(time.Millisecond):
				}
				if spoilt {
					return kv.Record{}, errors.New("the connection is closed")
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "an operation leaves a goroutine behind",
		noticed:  "operations leave no goroutines behind",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				go time.Sleep(time.Minute)
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a watch leaves a goroutine behind",
		noticed:  "watches leave no goroutines behind",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				go time.Sleep(time.Minute)
				return good.Watch(ctx, name)
			}}
		},
	},
	{
		sentence: "a watch outlasts its context",
		noticed:  "a watch ends with its context, and says so",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					for rec, err := range good.Watch(ctx, name) {
						if err != nil && !errors.Is(err, kv.ErrVacant) {
							time.Sleep(20 * time.Second)
						}
						if !yield(rec, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a watch that is left takes its time",
		noticed:  "a watch ends when its reader leaves the loop",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					for rec, err := range good.Watch(ctx, name) {
						if !yield(rec, err) {
							time.Sleep(10 * time.Second)
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a watch ends without a word",
		noticed:  "a watch tells of the cause or the error of its context",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					for rec, err := range good.Watch(ctx, name) {
						if ctx.Err() != nil || !yield(rec, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a watch does not look at its context before it begins",
		noticed:  "a watch ends at once if its context has ended",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				if ctx.Err() != nil {
					time.Sleep(20 * time.Second)
				}
				return good.Watch(ctx, name)
			}}
		},
	},
}
