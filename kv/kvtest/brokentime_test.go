package kvtest_test

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var timeBreaches = []breach{
	{
		sentence: "records fade a little early",
		noticed:  "a record fades, and not before its TTL has passed",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				return shortened(good.Create, ctx, name, rec)
			}}
		},
	},
	{
		sentence: "records stay for ever",
		noticed:  "an expired record is in nobody's way",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.TTL <= 0 {
					return good.Create(ctx, name, rec)
				}
				ttl := rec.TTL
				rec.TTL = max(ttl, time.Hour)
				got, err := good.Create(ctx, name, rec)
				got.TTL = ttl
				return got, err
			}}
		},
	},
	{
		sentence: "TTLs are cut to whole seconds",
		noticed:  "an odd TTL is rounded up, if at all",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec.TTL = rec.TTL.Truncate(time.Second)
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a takeover inherits what is left of the old record's life",
		noticed:  "a takeover grants a full life",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Signature == old.Signature || next.TTL <= 0 {
					return good.Swap(ctx, name, old, next)
				}
				ttl := next.TTL
				next.TTL /= 2
				rec, err := good.Swap(ctx, name, old, next)
				if err == nil {
					rec.TTL = ttl
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "an heir inherits what is left of its own record's life",
		noticed:  "a hand-over grants the heir a full life",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				ttl := next.TTL
				if next.Signature != old.Signature && next.Token != 0 {
					next.TTL /= 2
				}
				rec, err := good.Swap(ctx, name, old, next)
				if err == nil {
					rec.TTL = ttl
				}
				return rec, err
			}, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if err == nil && rec.TTL > 0 && rec.TTL < time.Second {
					rec.TTL = time.Second
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a publication shortens the record's life",
		noticed:  "publishing does not shorten a life",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Signature != old.Signature || old.Foreign {
					return good.Swap(ctx, name, old, next)
				}
				rec, err := good.Swap(ctx, name, old, next)
				if err != nil {
					return rec, err
				}
				ttl := rec.TTL
				time.AfterFunc(ttl/2, func() { _ = good.Delete(context.Background(), name, rec) })
				return rec, nil
			}}
		},
	},
	{
		sentence: "a publication changes the TTL",
		noticed:  "publishing does not change the TTL",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				rec, err := good.Swap(ctx, name, old, next)
				if err == nil {
					rec.TTL = next.TTL
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a refresh refreshes nothing",
		noticed:  "a refresh starts the TTL anew",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				there, err := good.Get(ctx, name)
				if err == nil && there.Owns(rec) {
					return there, nil
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a refresh is nothing to whoever watches, and judges by what it sees",
		noticed:  "another client that watches does not judge a record expired that is refreshed",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return judging(good, ctx, name)
			}}
		},
	},
	{
		sentence: "refreshes fail for some values",
		noticed:  "refreshes hold a safe for as long as they go on, whatever is published",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.Value == "" {
					return kv.Record{}, kv.ErrStale
				}
				return good.Refresh(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a create that is refused keeps the record alive",
		noticed:  "nobody takes a safe over before its record has faded",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && !there.Foreign {
					_, _ = good.Refresh(ctx, name, there)
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a lifetime is longer at least than at most",
		noticed:  "a lifetime is at least the TTL and its longest at least its shortest",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, life: func(ttl time.Duration) (kv.Lifetime, error) {
				life, err := good.Lifetime(ttl)
				life.Max = 2 * ttl // overflows
				return life, err
			}}
		},
	},
	{
		sentence: "create refuses a TTL that has a lifetime",
		noticed:  "lifetime and create agree on which TTLs are to be had",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.TTL > 24*time.Hour {
					return kv.Record{}, kv.ErrInvalid
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a TTL of zero means a default",
		noticed:  "a TTL is positive",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.TTL == 0 {
					rec.TTL = time.Second
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
}

// judging tells of a vacancy when a record has not changed for its TTL.
func judging(good *memkv.Store, ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	type state struct {
		rec kv.Record
		err error
	}
	return func(yield func(kv.Record, error) bool) {
		states := make(chan state)
		go func() {
			for rec, err := range good.Watch(ctx, name) {
				select {
				case states <- state{rec, err}:
				case <-ctx.Done():
				}
			}
		}()
		judged := time.NewTimer(time.Hour)
		defer judged.Stop()
		for {
			now := state{err: kv.ErrVacant}
			select {
			case <-ctx.Done():
				yield(kv.Record{}, context.Cause(ctx))
				return
			case now = <-states:
				judged.Reset(cmp.Or(now.rec.TTL, time.Hour))
			case <-judged.C:
			}
			if !yield(now.rec, now.err) {
				return
			}
		}
	}
}

// shortened lets write grant less than it says.
func shortened(write func(context.Context, string, kv.Record) (kv.Record, error), ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ttl := rec.TTL
	rec.TTL -= ttl / 50
	got, err := write(ctx, name, rec)
	if err == nil {
		got.TTL = ttl
	}
	return got, err
}
