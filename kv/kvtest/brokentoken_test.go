package kvtest_test

import (
	"context"
	"sync/atomic"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var tokenBreaches = []breach{
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
