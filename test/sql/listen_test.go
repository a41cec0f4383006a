package sqlkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// rarely has watches look by themselves far too late for a test.
func rarely() *sqlkv.Options { return &sqlkv.Options{Poll: time.Hour, Driver: pgxdriver.Driver{}} }

const listening = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"

// listeners waits until so many connections listen.
func (p *place) listeners(t testing.TB, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, p.hand.QueryRowContext(within(t, patience), listening).Scan(&n))
		return n == want
	}, patience, 10*time.Millisecond, "%d connections that listen", want)
}

// TestPostgreSQLTellsWatchesOfChanges has all watches of a store share a connection
// that is there as long as anybody watches.
func TestPostgreSQLTellsWatchesOfChanges(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	db := p.open(t, "")
	db.SetMaxOpenConns(1) // of the pool nothing is taken
	store, other, name := sqlkv.New(db, p.dialect, rarely()), p.store(t), named()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	one, two := watched(ctx, store, name), watched(ctx, store, name)
	require.ErrorIs(t, (<-one).err, kv.ErrVacant)
	require.ErrorIs(t, (<-two).err, kv.ErrVacant)
	p.listeners(t, 1)
	rec, err := other.Create(within(t, patience), name, signed("v"))
	require.NoError(t, err)
	require.Equal(t, rec, (<-one).rec)
	require.Equal(t, rec, (<-two).rec)
	next := rec
	next.Value = "published"
	rec, err = other.Swap(within(t, patience), name, rec, next)
	require.NoError(t, err)
	require.Equal(t, rec, (<-one).rec)
	rec, err = other.Swap(within(t, patience), name, rec, signed("the heir"))
	require.NoError(t, err)
	require.Equal(t, rec, (<-one).rec)
	require.NoError(t, other.Delete(within(t, patience), name, rec))
	require.ErrorIs(t, (<-one).err, kv.ErrVacant)
	stop()
	for range one { // until it is closed
	}
	for range two { // until it is closed
	}
	p.listeners(t, 0)
}

// TestWhatHappensWhileNobodyCouldTellIsLookedUp ends the connection that listens, and
// changes the safe before there is another.
func TestWhatHappensWhileNobodyCouldTellIsLookedUp(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	store := sqlkv.New(p.open(t, ""), p.dialect, rarely())
	other := p.store(t)
	name := named()
	seen := watched(t.Context(), store, name)
	require.ErrorIs(t, (<-seen).err, kv.ErrVacant)
	p.listeners(t, 1)
	for range 3 {
		p.do(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
		rec, err := other.Create(within(t, patience), name, signed("v"))
		require.NoError(t, err)
		require.Equal(t, rec, (<-seen).rec)
		require.NoError(t, other.Delete(within(t, patience), name, rec))
		require.ErrorIs(t, (<-seen).err, kv.ErrVacant)
		p.listeners(t, 1)
	}
}

// TestAnExpiryIsSeenWithoutAnybodysHelp has nothing told and no look due but the one
// at the record's end.
func TestAnExpiryIsSeenWithoutAnybodysHelp(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := sqlkv.New(p.open(t, ""), p.dialect, rarely())
		for life := 5 * time.Second; ; life *= 2 { // so that it is seen alive
			name := named()
			start := time.Now()
			rec, err := store.Create(within(t, patience), name, mortal(life))
			require.NoError(t, err)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			seen := watched(ctx, store, name)
			if first := <-seen; time.Since(start) < life {
				require.Equal(t, rec, first.rec)
			} else {
				require.Less(t, life, 30*time.Second, "this machine is too busy to see a record alive")
				continue
			}
			require.ErrorIs(t, (<-seen).err, kv.ErrVacant)
			require.GreaterOrEqual(t, time.Since(start), rec.TTL-rec.TTL/500)
			return
		}
	})
}

// TestAStandbyIsNotAsked has reads of a standby refused, though it could answer.
func TestAStandbyIsNotAsked(t *testing.T) {
	t.Parallel()
	primary := testenv.StartPostgres(t)
	p := inPostgres(t, primary.Addr())
	name, rec := held(t, p.store(t))
	standby := testenv.StartPostgresStandby(t, primary)
	behind := *p
	behind.source = replaced(p.source, primary.Addr(), standby.Addr())
	for _, store := range []kv.Store{behind.store(t), behind.observed(t)} {
		p.refusesAll(t, store, name, rec)
	}
	p.refusesAll(t, sqlkv.New(behind.open(t, "&default_transaction_read_only=on"), p.dialect, p.opts()), name, rec)
}

func TestAReadOnlyServerIsNotAsked(t *testing.T) {
	t.Parallel()
	server := testenv.StartMariaDB(t)
	p := inMariaDB(t, server.Addr())
	name, rec := held(t, p.store(t))
	p.do(t, "SET GLOBAL read_only = ON") // which root may write to nevertheless
	for _, store := range []kv.Store{p.store(t), p.observed(t)} {
		p.refusesAll(t, store, name, rec)
	}
}

// refusesAll requires that the store says nothing of what it is asked, read or write.
func (p *place) refusesAll(t testing.TB, store kv.Store, name string, rec kv.Record) {
	t.Helper()
	_, err := store.Get(within(t, patience), name)
	undecided(t, err, "get")
	_, err = store.Create(within(t, patience), named(), signed("v"))
	undecided(t, err, "create")
	_, err = store.Refresh(within(t, patience), name, rec)
	undecided(t, err, "refresh")
	undecided(t, store.Delete(within(t, patience), name, rec), "delete")
	for _, err := range store.Watch(within(t, patience), name) {
		undecided(t, err, "watch")
	}
}

// TestAReadOnlySessionCanRead is of the primary, that would not be written to.
func TestAReadOnlySessionCanRead(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	name, rec := held(t, p.store(t))
	store := sqlkv.New(p.open(t, "&default_transaction_read_only=on"), p.dialect, p.opts())
	holds(t, store, name, rec)
	_, err := store.Refresh(within(t, patience), name, rec)
	undecided(t, err, "refresh")
}
