package sqlkv_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"database/sql"

	"github.com/electkv/election"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// TestOneConnectionIsEnough has candidates, who watch and write, share a pool of one.
func TestOneConnectionIsEnough(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		db := p.open(t, "")
		db.SetMaxOpenConns(1)
		for _, store := range []kv.Store{sqlkv.New(db, p.dialect, p.opts()), sqlkv.NewObserved(db, p.dialect, p.opts())} {
			takeTurns(t, store, named(), 3)
		}
		require.LessOrEqual(t, db.Stats().InUse, 0)
	})
}

// takeTurns has candidates lead one after the other, each once.
func takeTurns(t testing.TB, store kv.Store, name string, candidates int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var tokens []uint64
	led := errors.New("it has led")
	for range candidates {
		all.Go(func() {
			c, err := election.New(store, name, &election.Options{TTL: 5 * time.Second})
			if err != nil {
				return
			}
			_ = c.Run(ctx, func(_ context.Context, term *election.Term) error {
				mu.Lock()
				defer mu.Unlock()
				tokens = append(tokens, term.Token())
				return led
			})
		})
	}
	all.Wait()
	require.Len(t, tokens, candidates)
	require.IsIncreasing(t, tokens)
}

// TestThroughATransactionPoolerAllIsAsWithoutOne has many clients share few
// connections of a server, which they have for a transaction at a time. The driver's
// settings are its defaults.
func TestThroughATransactionPoolerAllIsAsWithoutOne(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t)
	near := inPostgres(t, server)
	bouncer := testenv.StartPgBouncer(t, server, "default_pool_size = 2")
	far := *near
	far.source = replaced(near.source, server, bouncer.Addr())

	var all sync.WaitGroup
	for range 8 {
		store := far.store(t)
		all.Go(func() {
			for range 10 {
				name := named()
				rec, err := store.Create(within(t, patience), name, signed("v"))
				if err == nil {
					rec, err = store.Refresh(within(t, patience), name, rec)
				}
				if err == nil {
					err = store.Delete(within(t, patience), name, rec)
				}
				if err != nil {
					t.Errorf("through the pooler: %v", err)
				}
			}
		})
	}
	all.Wait()
	takeTurns(t, far.store(t), named(), 3)
	takeTurns(t, far.observed(t), named(), 3)

	// Nobody listens, as nobody would hear, and nothing is left behind.
	name := named()
	seen := watched(t.Context(), far.store(t), name)
	require.ErrorIs(t, (<-seen).err, kv.ErrVacant)
	rec, err := far.store(t).Create(within(t, patience), name, signed("v"))
	require.NoError(t, err)
	require.Equal(t, rec, (<-seen).rec)
	db := far.open(t, "&default_query_exec_mode=simple_protocol")
	for range 20 {
		var timeout string
		var channels int
		require.NoError(t, db.QueryRowContext(within(t, patience),
			"SELECT current_setting('lock_timeout'), (SELECT COUNT(*) FROM pg_listening_channels())").Scan(&timeout, &channels))
		require.Equal(t, "0", timeout, "a setting was left behind")
		require.Zero(t, channels, "one listens on a connection that others use")
	}
}

// TestADriverThatIsWrappedNeedsTheModeInItsSource has a driver that this package does
// not know through its wrapping, as tracers wrap it.
func TestADriverThatIsWrappedNeedsTheModeInItsSource(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t)
	p := inPostgres(t, server)
	bouncer := testenv.StartPgBouncer(t, server, "default_pool_size = 2")
	source := replaced(p.source, server, bouncer.Addr()) + "&default_query_exec_mode=exec"
	connector := dialer{driver: stdlib.GetDefaultDriver(), source: source}
	db := sql.OpenDB(p.sent.count(connector))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	takeTurns(t, sqlkv.New(db, p.dialect, p.opts()), named(), 3)
}

// sighting is what a watch yields.
type sighting struct {
	rec kv.Record
	err error
}

// watched hands on what a watch yields, until ctx ends.
func watched(ctx context.Context, store kv.Store, name string) <-chan sighting {
	seen := make(chan sighting, 100)
	go func() {
		defer close(seen)
		for rec, err := range store.Watch(ctx, name) {
			seen <- sighting{rec, err}
		}
	}()
	return seen
}
