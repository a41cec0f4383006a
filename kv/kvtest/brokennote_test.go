package kvtest_test

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var noteBreaches = []breach{
	{
		sentence: "a create forgets the note",
		noticed:  "any text can be a note",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec.Note = ""
				return good.Create(ctx, name, rec)
			}}
		},
	},
	{
		sentence: "a refresh does not tell the note",
		noticed:  "any text can be a note",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec, err := good.Refresh(ctx, name, rec)
				rec.Note = ""
				return rec, err
			}}
		},
	},
	{
		sentence: "notes are made text",
		noticed:  "a note that is no text is refused or kept",
		open: func(good *memkv.Store) kv.Store {
			return withNotes(good, func(n string) string { return strings.ToValidUTF8(n, "\ufffd") })
		},
	},
	{
		sentence: "large notes are cut",
		noticed:  "a note that is too large is refused whole",
		open: func(good *memkv.Store) kv.Store {
			return withNotes(good, func(n string) string { return n[:min(len(n), 512<<10)] })
		},
	},
	{
		sentence: "a publication is skipped if the value is there already",
		noticed:  "publishing a note alone is a change",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if there, err := good.Get(ctx, name); err == nil && there == old && next.Signature == old.Signature && next.Value == old.Value {
					return there, nil
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a watch compares values alone",
		noticed:  "publishing a note alone is a change",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					var last kv.Record
					for rec, err := range good.Watch(ctx, name) {
						same := rec.Owns(last) && rec.Value == last.Value
						last = rec
						if !same && !yield(rec, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a new value keeps the old note",
		noticed:  "value and note are published together",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Signature == old.Signature && next.Value != old.Value {
					next.Note = old.Note
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a publication writes the value first and the note then",
		noticed:  "value and note are published together",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Signature != old.Signature || next.Note == old.Note {
					return good.Swap(ctx, name, old, next)
				}
				first := next
				first.Note = old.Note
				rec, err := good.Swap(ctx, name, old, first)
				if err != nil {
					return rec, err
				}
				time.Sleep(time.Millisecond)
				return good.Swap(ctx, name, rec, next)
			}}
		},
	},
	{
		sentence: "a hand-over keeps the old note",
		noticed:  "a hand-over puts the next note",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
				if next.Signature != old.Signature {
					next.Note = old.Note
				}
				return good.Swap(ctx, name, old, next)
			}}
		},
	},
	{
		sentence: "a foreign record has a note",
		noticed:  "a foreign record is reported as one",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, get: func(ctx context.Context, name string) (kv.Record, error) {
				rec, err := good.Get(ctx, name)
				if rec.Foreign {
					rec.Note = rec.Value
				}
				return rec, err
			}}
		},
	},
	{
		sentence: "a join forgets the note",
		noticed:  "a place has its note",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{join: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				rec.Note = ""
				return good.Join(ctx, name, rec)
			}})
		},
	},
	{
		sentence: "to stay does not tell the note",
		noticed:  "a place has its note",
		line: func(good *memkv.Queue) kv.Store {
			return inLine(good, &broken{stay: func(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
				rec, leads, err := good.Stay(ctx, name, rec)
				rec.Note = ""
				return rec, leads, err
			}})
		},
	},
}

// withNotes changes notes on their way to the good store.
func withNotes(good *memkv.Store, change func(string) string) kv.Store {
	return &broken{
		Store: good,
		create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
			rec.Note = change(rec.Note)
			return good.Create(ctx, name, rec)
		},
		swap: func(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
			next.Note = change(next.Note)
			return good.Swap(ctx, name, old, next)
		},
	}
}
