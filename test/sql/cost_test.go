package sqlkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/kv"
)

// TestEachOperationIsAsManyStatementsAsTheDocumentationSays counts what the drivers
// are given.
func TestEachOperationIsAsManyStatementsAsTheDocumentationSays(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		again := int64(0) // what MySQL does not show is read, and so is why it refused
		if p.dialect == sqlkv.MySQL {
			again = 1
		}
		look, lock := int64(0), int64(0) // at whose clock the record in the way is by; BEGIN, lock, COMMIT
		if p.dialect == sqlkv.SQLite {
			look, lock = 1, 3
		}
		name := named()
		var rec kv.Record
		costs := func(what string, want int64, do func() error) {
			t.Helper()
			before := p.sent.Load()
			err := do()
			require.Equal(t, want, p.sent.Load()-before, "%s (%v)", what, err)
		}
		costs("the first create of a safe", 3+again+2*lock, func() (err error) {
			rec, err = store.Create(within(t, patience), name, signed("v"))
			return err
		})
		require.NotZero(t, rec.Token)
		costs("a create that is refused", 3+2*again+look+2*lock, func() error {
			_, err := store.Create(within(t, patience), name, signed("v"))
			return err
		})
		costs("a refresh", 1+again+lock, func() error {
			_, err := store.Refresh(within(t, patience), name, rec)
			return err
		})
		costs("a get", 1, func() error {
			_, err := store.Get(within(t, patience), name)
			return err
		})
		next := rec
		next.Value = "published"
		costs("a publication", 1, func() (err error) {
			rec, err = store.Swap(within(t, patience), name, rec, next)
			return err
		})
		costs("a hand-over", 1+lock, func() (err error) {
			rec, err = store.Swap(within(t, patience), name, rec, signed("the heir"))
			return err
		})
		costs("a delete", 1, func() error { return store.Delete(within(t, patience), name, rec) })
		costs("a create", 1+lock, func() error {
			_, err := store.Create(within(t, patience), name, signed("v"))
			return err
		})
	})
}

// TestAWaitingCandidateCostsWhatTheDocumentationSays counts the looks of watches of a
// record that lives for long, with the default options.
func TestAWaitingCandidateCostsWhatTheDocumentationSays(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		const watches, window = 20, 3 * time.Second
		store := sqlkv.New(p.open(t, ""), p.dialect, &sqlkv.Options{Driver: pgxdriver.Driver{}})
		name, rec := held(t, store)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		for range watches {
			require.Equal(t, rec, (<-watched(ctx, store, name)).rec)
		}
		if p.dialect == sqlkv.PostgreSQL {
			p.listeners(t, 1)
			time.Sleep(500 * time.Millisecond) // each looks when hints begin to come
		}
		start, before := time.Now(), p.sent.Load()
		time.Sleep(window)
		took, sent := time.Since(start), p.sent.Load()-before
		most := 1 / 0.75
		if p.dialect == sqlkv.PostgreSQL {
			most = 1 / 7.5
		}
		t.Logf("%d watches looked %d times in %v: %.2f a second each", watches, sent, took, float64(sent)/took.Seconds()/watches)
		require.LessOrEqual(t, float64(sent), watches*(most*took.Seconds()+1))
	})
}
