package sqlkv_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// lock has somebody else's transaction hold the safe's row, until it is let go.
func (p *place) lock(t testing.TB, name string) (letGo func()) {
	t.Helper()
	if p.dialect == sqlkv.SQLite {
		conn, err := p.hand.Conn(within(t, patience))
		require.NoError(t, err)
		_, err = conn.ExecContext(within(t, patience), "BEGIN IMMEDIATE")
		require.NoError(t, err)
		return func() {
			_, err = conn.ExecContext(within(t, patience), "ROLLBACK")
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}
	}
	tx, err := p.hand.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	var locked []byte
	require.NoError(t, tx.QueryRowContext(within(t, patience), p.say("SELECT name FROM election WHERE name = ? FOR UPDATE"), name).Scan(&locked))
	return func() { require.NoError(t, tx.Rollback()) }
}

// TestAForeignLockHoldsNobodyUpForLongerThanItsContext has writes wait for a row that
// somebody else's transaction holds. They end with their contexts, and nobody is told
// that anything has been decided.
func TestAForeignLockHoldsNobodyUpForLongerThanItsContext(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		name, rec := held(t, store)
		letGo := p.lock(t, name)
		next := rec
		next.Value = "changed"
		for op, write := range map[string]func(context.Context) error{
			"refresh": func(ctx context.Context) error { _, err := store.Refresh(ctx, name, rec); return err },
			"publish": func(ctx context.Context) error { _, err := store.Swap(ctx, name, rec, next); return err },
			"delete":  func(ctx context.Context) error { return store.Delete(ctx, name, rec) },
		} {
			start := time.Now()
			err := write(within(t, 200*time.Millisecond))
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
			for _, decided := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
				require.NotErrorIs(t, err, decided, op)
			}
			require.Less(t, time.Since(start), patience/3, op)
		}
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err, "a read waits for nobody")
		require.Equal(t, rec, got)
		letGo()
		p.settles(t, store, name)
	})
}

// settles requires that the safe can be used again: what was given up while it waited
// may still have been carried out.
func (p *place) settles(t testing.TB, store kv.Store, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		rec, err := store.Get(within(t, patience), name)
		if err != nil {
			rec, err = store.Create(within(t, patience), name, signed("again"))
		}
		if err == nil {
			_, err = store.Refresh(within(t, patience), name, rec)
		}
		return err == nil
	}, patience, 20*time.Millisecond)
}

// TestWhatWaitedForALockGoesOn has a lock end while a write waits for it, longer than
// MariaDB is told to wait.
func TestWhatWaitedForALockGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		name, rec := held(t, store)
		letGo := p.lock(t, name)
		done := make(chan error, 1)
		go func() {
			_, err := store.Refresh(within(t, patience), name, rec)
			done <- err
		}()
		time.Sleep(1500 * time.Millisecond)
		letGo()
		require.NoError(t, <-done)
	})
}

// TestNothingWaitsInTheServerForWhatWasGivenUp counts the statements that wait for a
// lock after their callers have gone.
func TestNothingWaitsInTheServerForWhatWasGivenUp(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		store := p.store(t)
		name, rec := held(t, store)
		defer p.lock(t, name)()
		for range 5 {
			_, err := store.Refresh(within(t, 100*time.Millisecond), name, rec)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		waiting := `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		if p.dialect == sqlkv.MySQL {
			waiting = `SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%UPDATE%election%' AND id <> CONNECTION_ID()`
		}
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, p.hand.QueryRowContext(within(t, patience), waiting).Scan(&n))
			return n == 0
		}, patience, 50*time.Millisecond)
	})
}

// TestWhoLosesAgainstAnotherTransactionIsToldSoAndNothingElse has claimers race at
// each isolation level, on a safe that was never used and on one that has expired.
func TestWhoLosesAgainstAnotherTransactionIsToldSoAndNothingElse(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(level, func(t *testing.T) {
				db := p.open(t, p.asks(p.isolation(level)))
				require.Equal(t, level, p.isolationOf(t, db))
				store := sqlkv.New(db, p.dialect, p.opts())
				observed := sqlkv.NewObserved(db, p.dialect, p.opts())
				for range 4 {
					name := named()
					oneWins(t, store, name)
					rec, err := store.Get(within(t, patience), name)
					require.NoError(t, err)
					p.expire(t, name)
					oneWins(t, store, name)
					next, err := store.Get(within(t, patience), name)
					require.NoError(t, err)
					require.Greater(t, next.Token, rec.Token)
					oneWins(t, observed, named())
				}
			})
		}
	})
}

func (p *place) isolation(level string) string {
	if p.dialect == sqlkv.PostgreSQL {
		return "default_transaction_isolation=" + strings.ReplaceAll(level, " ", "%20")
	}
	return "tx_isolation=%27" + strings.ReplaceAll(level, " ", "-") + "%27"
}

func (p *place) isolationOf(t testing.TB, db *sql.DB) (level string) {
	query := "SELECT LOWER(REPLACE(@@tx_isolation, '-', ' '))"
	if p.dialect == sqlkv.PostgreSQL {
		query = "SHOW transaction_isolation"
	}
	require.NoError(t, db.QueryRowContext(within(t, patience), query).Scan(&level))
	return level
}

// expire makes a record of the store's look as old as it would come to be.
func (p *place) expire(t testing.TB, name string) {
	t.Helper()
	past := map[sqlkv.Dialect]string{
		sqlkv.PostgreSQL: "clock_timestamp() - INTERVAL '1 second'",
		sqlkv.MySQL:      "UTC_TIMESTAMP(6) - INTERVAL 1 SECOND",
		sqlkv.SQLite:     "1",
	}
	p.do(t, "UPDATE election SET expires = "+past[p.dialect]+" WHERE name = ?", name)
}

// oneWins has many create a record at once, and one of them win: none is refused by
// nobody.
func oneWins(t testing.TB, store kv.Store, name string) {
	t.Helper()
	const claimers = 12
	errs := make(chan error, claimers)
	for range claimers {
		go func() {
			_, err := store.Create(within(t, patience), name, signed("v"))
			errs <- err
		}()
	}
	won := 0
	for range claimers {
		err := <-errs
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, kv.ErrHeld)
	}
	require.Equal(t, 1, won)
}

// TestInPostgreSQLADeadlockIsAConflict has our statement be the one that a deadlock
// is resolved against: it goes again.
func TestInPostgreSQLADeadlockIsAConflict(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	db := p.open(t, p.asks("deadlock_timeout=1s"))
	store := sqlkv.New(db, p.dialect, p.opts())
	name, rec := held(t, store)
	// A trigger has the refresh lock a second row, after the safe's.
	p.do(t, "CREATE TABLE other (id int PRIMARY KEY, n int)")
	p.do(t, "INSERT INTO other VALUES (1, 0)")
	p.do(t, `CREATE FUNCTION also() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN UPDATE other SET n = n + 1; RETURN NEW; END $$`)
	p.do(t, "CREATE TRIGGER also AFTER UPDATE ON election FOR EACH ROW EXECUTE FUNCTION also()")
	tx, err := p.hand.BeginTx(within(t, patience), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(within(t, patience), "SET LOCAL deadlock_timeout = '1h'")
	require.NoError(t, err)
	_, err = tx.ExecContext(within(t, patience), "UPDATE other SET n = n + 1")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := store.Refresh(within(t, patience), name, rec)
		done <- err
	}()
	time.Sleep(200 * time.Millisecond)
	_, err = tx.ExecContext(within(t, patience), "UPDATE election SET updated = clock_timestamp() WHERE name = $1", name)
	require.NoError(t, err, "the other transaction is not the one to lose")
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
}
