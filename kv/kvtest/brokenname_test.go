package kvtest_test

import (
	"context"
	"iter"
	"path"
	"strings"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var nameBreaches = []breach{
	{
		sentence: "names are cleaned like paths",
		noticed:  "names that are paths are not resolved",
		open:     func(good *memkv.Store) kv.Store { return withNames(good, path.Clean) },
	},
	{
		sentence: "names are cut to 255 bytes",
		noticed:  "very long names are kept apart or refused",
		open: func(good *memkv.Store) kv.Store {
			return withNames(good, func(s string) string { return s[:min(len(s), 255)] })
		},
	},
	{
		sentence: "names lose their case",
		noticed:  "odd names are kept apart or refused",
		open:     func(good *memkv.Store) kv.Store { return withNames(good, strings.ToLower) },
	},
	{
		sentence: "names lose what is no UTF-8",
		noticed:  "odd names are kept apart or refused",
		open: func(good *memkv.Store) kv.Store {
			return withNames(good, func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		},
	},
	{
		sentence: "names lose a slash at their end",
		noticed:  "a name is not confused with those that begin with it",
		open: func(good *memkv.Store) kv.Store {
			return withNames(good, func(s string) string { return strings.TrimSuffix(s, "/") })
		},
	},
	{
		sentence: "an empty name is a name",
		noticed:  "no operation takes an empty name",
		open:     func(good *memkv.Store) kv.Store { return withNames(good, func(s string) string { return "/" + s }) },
	},
	{
		sentence: "an empty signature is a signature",
		noticed:  "no record goes without a signature",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.Signature == "" {
					rec.Signature = "nobody"
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "signatures are trimmed",
		noticed:  "any string can be a signature",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec.Signature = strings.TrimSpace(rec.Signature)
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "values lose what is no UTF-8",
		noticed:  "any bytes can be a value",
		open: func(good *memkv.Store) kv.Store {
			return withValues(good, func(v string) string { return strings.ToValidUTF8(v, "\ufffd") })
		},
	},
	{
		sentence: "values that look like records are unwrapped",
		noticed:  "a value may look like a record",
		open: func(good *memkv.Store) kv.Store {
			return withValues(good, func(v string) string { return kv.Decode(v).Value })
		},
	},
	{
		sentence: "large values are cut",
		noticed:  "a value that is too large is refused whole",
		open: func(good *memkv.Store) kv.Store {
			return withValues(good, func(v string) string { return v[:min(len(v), 512<<10)] })
		},
	},
}

// withNames changes names on their way to the good store.
func withNames(good *memkv.Store, change func(string) string) kv.Store {
	return &broken{
		Store: good,
		create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			return good.Create(ctx, change(name), rec)
		},
		swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
			return good.Swap(ctx, change(name), old, next)
		},
		refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			return good.Refresh(ctx, change(name), rec)
		},
		delete: func(ctx context.Context, name string, rec kv.Record) error {
			return good.Delete(ctx, change(name), rec)
		},
		get: func(ctx context.Context, name string) (kv.Record, error) {
			return good.Get(ctx, change(name))
		},
		watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
			return good.Watch(ctx, change(name))
		},
	}
}

// withValues changes values on their way to the good store.
func withValues(good *memkv.Store, change func(string) string) kv.Store {
	return &broken{
		Store: good,
		create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			rec.Value = change(rec.Value)
			return good.Create(ctx, name, rec)
		},
		swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
			next.Value = change(next.Value)
			return good.Swap(ctx, name, old, next)
		},
	}
}
