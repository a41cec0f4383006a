//go:build linux

package faults

import (
	"database/sql"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/internal/testenv"
)

// inTable reports whether a kind of store is a table of a database.
func inTable(kind string) bool {
	return kind == kindSQLite || kind == kindPostgres || kind == kindMariaDB
}

func (s *stage) inTable() bool { return inTable(s.col.kind) }

// sql returns a pool of connections. How long a connection may take to come is
// bounded, as the adapter's documentation advises.
func (p part) sql() (*sql.DB, sqlkv.Dialect, error) {
	db, dialect, err := p.openDB()
	if err == nil && p.Neighbours > 0 {
		db.SetMaxOpenConns(10)
	}
	return db, dialect, err
}

// keepFromWriting waits until nobody writes to SQLite, and keeps all from it until the function
// that it returns is called.
func (s *stage) keepFromWriting() (allow func()) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.addrs[0]+"?_pragma=busy_timeout(10000)")
	require.NoError(s.t, err)
	conn, err := db.Conn(s.t.Context())
	require.NoError(s.t, err)
	_, err = conn.ExecContext(s.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(s.t, err)
	return func() {
		_, err := conn.ExecContext(s.t.Context(), "ROLLBACK")
		require.NoError(s.t, err)
		require.NoError(s.t, conn.Close())
		require.NoError(s.t, db.Close())
	}
}

func (p part) openDB() (*sql.DB, sqlkv.Dialect, error) {
	switch p.Store {
	case kindSQLite:
		db, err := sql.Open("sqlite", "file:"+p.Addrs[0]+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(250)")
		return db, sqlkv.SQLite, err
	case kindMariaDB:
		config, err := mysql.ParseDSN(testenv.MySQLDSN(p.link(p.Addrs[0]), p.Database))
		if err != nil {
			return nil, 0, err
		}
		config.Timeout, config.Logger = 5*time.Second, &mysql.NopLogger{}
		config.InterpolateParams = true // as the adapter's documentation advises: a statement is one message
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, 0, err
		}
		return sql.OpenDB(connector), sqlkv.MySQL, nil
	default:
		db, err := sql.Open("pgx", testenv.PostgresURL(p.link(p.Addrs[0]), p.Database))
		return db, sqlkv.PostgreSQL, err
	}
}

// poll has watches look so often that a release is seen in time where nobody
// tells of it. Where PostgreSQL does, they look ten times less.
func (p part) poll() *sqlkv.Options {
	if p.Store == kindPostgres {
		return &sqlkv.Options{Poll: 80 * time.Millisecond, Driver: pgxdriver.Driver{}}
	}
	return &sqlkv.Options{Poll: 200 * time.Millisecond}
}

// makeTable makes the table in the database.
func (s *stage) makeTable() {
	s.t.Helper()
	db, dialect := s.db()
	require.NoError(s.t, sqlkv.Migrate(s.t.Context(), db, dialect, nil))
}

// db returns a pool of the stage's own, which uses no links.
func (s *stage) db() (*sql.DB, sqlkv.Dialect) {
	s.t.Helper()
	if s.pool == nil {
		pool, dialect, err := s.director().sql()
		require.NoError(s.t, err)
		s.t.Cleanup(func() { pool.Close() })
		s.pool, s.dialect = pool, dialect
	}
	return s.pool, s.dialect
}

// inSQL carries out a statement of an operator's, with ? for each argument.
func (s *stage) inSQL(statement string, args ...any) {
	s.t.Helper()
	db, dialect := s.db()
	_, err := db.ExecContext(s.t.Context(), say(dialect, statement), args...)
	require.NoError(s.t, err)
}

// say returns a statement with as many ? as it has arguments, few, as the dialect
// has them.
func say(dialect sqlkv.Dialect, statement string) string {
	if dialect == sqlkv.PostgreSQL {
		statement = strings.Replace(statement, "?", "$1", 1)
		statement = strings.Replace(statement, "?", "$2", 1)
	}
	return statement
}

// overwriteRow puts somebody else's row in the place of the safe's.
func (s *stage) overwriteRow(value string) {
	s.t.Helper()
	statement := `INSERT INTO election (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET signature = NULL, value = EXCLUDED.value, note = NULL, expires = NULL`
	if s.col.kind == kindMariaDB {
		statement = `INSERT INTO election (name, value) VALUES (?, ?)
ON DUPLICATE KEY UPDATE signature = NULL, value = VALUES(value), note = NULL, expires = NULL`
	}
	s.inSQL(statement, s.name, []byte(value))
}

// valueInRow returns the value that the safe's row has.
func (s *stage) valueInRow() string {
	s.t.Helper()
	db, dialect := s.db()
	value := []byte{}
	row := db.QueryRowContext(s.t.Context(), say(dialect, "SELECT value FROM election WHERE name = ?"), s.name)
	require.NoError(s.t, row.Scan(&value))
	return string(value)
}

// leftInRow returns the time that the server gives the record.
func (s *stage) leftInRow() time.Duration {
	s.t.Helper()
	db, dialect := s.db()
	micros := int64(0)
	statement := "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires) FROM election WHERE name = ?"
	if dialect == sqlkv.PostgreSQL {
		statement = "SELECT CAST(EXTRACT(EPOCH FROM expires - clock_timestamp()) * 1000000 AS bigint) FROM election WHERE name = $1"
	}
	require.NoError(s.t, db.QueryRowContext(s.t.Context(), statement, s.name).Scan(&micros))
	return time.Duration(micros) * time.Microsecond
}
