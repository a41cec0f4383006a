//go:build unix

package linear_test

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// dialSQL returns a pool of connections to a database: for SQLite, a file.
func dialSQL(t testing.TB, dialect sqlkv.Dialect, addr, database string) *sql.DB {
	t.Helper()
	driver, source := "pgx", testenv.PostgresURL(addr, database)
	switch dialect {
	case sqlkv.SQLite:
		driver, source = "sqlite", "file:"+addr+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(100)"
	case sqlkv.MySQL:
		config, err := mysql.ParseDSN(testenv.MySQLDSN(addr, database))
		require.NoError(t, err)
		config.Timeout = timeout
		driver, source = "mysql", config.FormatDSN()
	}
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() }) // some of its connections are to a server that was killed
	return db
}

// migrated makes the table.
func migrated(t testing.TB, dialect sqlkv.Dialect, addr, database string) {
	t.Helper()
	require.NoError(t, sqlkv.Migrate(t.Context(), dialSQL(t, dialect, addr, database), dialect, &sqlkv.Options{Driver: pgxdriver.Driver{}}))
}

func sqlSubject(t testing.TB, recorder *linear.Recorder, name string, dialect sqlkv.Dialect, server *testenv.Server, database string) subject {
	migrated(t, dialect, server.Addr(), database)
	wires := newWires(t, server.Addr())
	return subject{
		name:   name,
		faults: append(wireFaults(wires), serverFaults("server", time.Second, one(server))...),
		brief:  300 * time.Millisecond,
		judged: committing,
		open: func(client int) kv.Store {
			return recorder.Client(client, sqlkv.New(dialSQL(t, dialect, wires[client][0].Addr(), database), dialect, nil))
		},
	}
}

// committing returns the history without the reads that found a record faded while a refresh of it
// was being committed: readers see the old end until then, as sqlkv's documentation says. No write
// is spared, so a safe that was given away meanwhile is found.
func committing(history []linear.Operation) []linear.Operation {
	return slices.DeleteFunc(slices.Clone(history), func(read linear.Operation) bool {
		return read.Kind == linear.Get && read.Outcome == linear.Vacant && slices.ContainsFunc(history, func(op linear.Operation) bool {
			return op.Kind == linear.Refresh && op.Name == read.Name && op.Call < read.Return &&
				(op.Outcome == linear.Unknown || op.Outcome == linear.Done && op.Return > read.Call)
		})
	})
}

func TestAReadDuringARefreshMayBeLateAndNoOtherOne(t *testing.T) {
	const ttl = 10
	rec := linear.Record{Signature: "s", Token: 1, Revision: 1, TTL: ttl}
	refreshed := func(call, done time.Duration) []linear.Operation {
		return []linear.Operation{
			{Kind: linear.Create, Call: 0, Return: 1, Given: &rec, Outcome: linear.Done, Got: &rec},
			{Kind: linear.Refresh, Call: call, Return: done, Given: &rec, Outcome: linear.Done, Got: &rec},
			{Kind: linear.Get, Call: 12, Return: 13, Outcome: linear.Vacant},
			{Kind: linear.Get, Call: 16, Return: 17, Outcome: linear.Done, Got: &rec},
		}
	}
	for _, c := range []struct {
		history []linear.Operation
		want    linear.Result
	}{
		{refreshed(8, 15), linear.Kept},
		{refreshed(8, 11), linear.Broken},
		{refreshed(14, 15), linear.Broken},
		{append(refreshed(8, 15), linear.Operation{
			Client: 1, Kind: linear.Create, Call: 13, Return: 14, Outcome: linear.Done,
			Given: &linear.Record{Signature: "other", TTL: ttl}, Got: &linear.Record{Signature: "other", Token: 2, Revision: 2, TTL: ttl},
		}), linear.Broken},
	} {
		verdict, err := linear.Check(committing(c.history), patience)
		require.NoError(t, err)
		require.Equal(t, c.want, verdict.Result, "%v", c.history)
	}
}

func TestPostgreSQLIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartPostgres(t), linear.NewRecorder()
	try(t, recorder, sqlSubject(t, recorder, "postgres", sqlkv.PostgreSQL, server, testenv.NewPostgresDatabase(t, server.Addr())))
}

func TestMariaDBIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartMariaDB(t), linear.NewRecorder()
	try(t, recorder, sqlSubject(t, recorder, "mariadb", sqlkv.MySQL, server, testenv.NewMySQLDatabase(t, server.Addr())))
}

func TestObservedPostgreSQLIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	server, recorder := testenv.StartPostgres(t), linear.NewRecorder()
	database := testenv.NewPostgresDatabase(t, server.Addr())
	migrated(t, sqlkv.PostgreSQL, server.Addr(), database)
	try(t, recorder, observed(t, recorder, "postgres", server, func(w wire) kv.Store {
		return sqlkv.NewObserved(dialSQL(t, sqlkv.PostgreSQL, w[0].Addr(), database), sqlkv.PostgreSQL, &sqlkv.Options{Driver: pgxdriver.Driver{}})
	}))
}

// What can go wrong with a file is that somebody else has it locked.
func TestSQLiteIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	file, recorder := filepath.Join(t.TempDir(), "election.db"), linear.NewRecorder()
	migrated(t, sqlkv.SQLite, file, "")
	other := dialSQL(t, sqlkv.SQLite, file, "")
	try(t, recorder, subject{
		name:   "sqlite",
		brief:  300 * time.Millisecond,
		judged: committing,
		faults: []fault{{name: "locked", hold: 2 * time.Second, strike: func(*rand.Rand) func() {
			tx, err := other.Begin()
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, err := tx.Exec("UPDATE election SET value = value WHERE name = ''")
				return err == nil
			}, patience, time.Millisecond)
			return func() { require.NoError(t, tx.Rollback()) }
		}}},
		open: func(client int) kv.Store {
			return recorder.Client(client, sqlkv.New(dialSQL(t, sqlkv.SQLite, file, ""), sqlkv.SQLite, nil))
		},
	})
}
