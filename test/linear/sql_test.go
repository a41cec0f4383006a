//go:build unix

package linear_test

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
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
		open: func(client int) kv.Store {
			return recorder.Client(client, sqlkv.New(dialSQL(t, dialect, wires[client][0].Addr(), database), dialect, nil))
		},
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
		name:  "sqlite",
		brief: 300 * time.Millisecond,
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
