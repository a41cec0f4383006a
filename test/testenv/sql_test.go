//go:build unix

package testenv_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	for _, s := range []struct {
		name string
		addr string
		make func(testing.TB, string) string
		do   func(ctx context.Context, addr, database, statement string) error
	}{
		{"postgres", testenv.Postgres(t), testenv.NewPostgresDatabase, doPostgres},
		{"mariadb", testenv.MariaDB(t), testenv.NewMySQLDatabase, doMariaDB},
	} {
		t.Run(s.name, func(t *testing.T) {
			one, other := s.make(t, s.addr), s.make(t, s.addr)
			require.NotEqual(t, one, other)
			require.NoError(t, s.do(within(t), s.addr, one, "CREATE TABLE mine (n INT)"))
			require.NoError(t, s.do(within(t), s.addr, one, "INSERT INTO mine VALUES (1)"))
			require.ErrorContains(t, s.do(within(t), s.addr, other, "INSERT INTO mine VALUES (1)"), "mine")

			var gone string
			t.Run("its test", func(t *testing.T) {
				gone = s.make(t, s.addr)
				require.NoError(t, s.do(within(t), s.addr, gone, "CREATE TABLE mine (n INT)"))
			})
			require.ErrorContains(t, s.do(within(t), s.addr, gone, "CREATE TABLE other (n INT)"), gone)
		})
	}
}

func TestPausedPostgresStopsTheConnectionsThatItHas(t *testing.T) {
	server := testenv.StartPostgres(t)
	conn, err := pgx.Connect(within(t), testenv.PostgresURL(server.Addr(), "postgres"))
	require.NoError(t, err)
	defer conn.Close(context.Background())

	server.Pause()
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(within(t)) }()
	select {
	case err := <-answered:
		t.Fatalf("a paused server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	server.Continue()
	require.NoError(t, <-answered)

	server.Kill()
	require.Error(t, conn.Ping(within(t)), "nor do connections outlive it")

	server.Restart()
	server.Pause()
	server.Restart() // where a connection that stands still would be in the way
	require.NoError(t, putPostgres(within(t), server.Addr(), "k", "v"))
}

func TestPgBouncerLendsItsConnectionsByTheTransaction(t *testing.T) {
	upstream := testenv.StartPostgres(t)
	database := testenv.NewPostgresDatabase(t, upstream.Addr())
	bouncer := testenv.StartPgBouncer(t, upstream.Addr(), "default_pool_size = 1")
	url := testenv.PostgresURL(bouncer.Addr(), database) + "&default_query_exec_mode=exec"

	// Two clients, and one connection to the server: each finds it free.
	var pids [2]int
	for i := range pids {
		conn, err := pgx.Connect(within(t), url)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		require.NoError(t, conn.QueryRow(within(t), "SELECT pg_backend_pid()").Scan(&pids[i]))
	}
	require.Equal(t, pids[0], pids[1])

	bouncer.Restart()
	conn, err := pgx.Connect(within(t), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	var name string
	require.NoError(t, conn.QueryRow(within(t), "SELECT current_database()").Scan(&name))
	require.Equal(t, database, name)
}

func TestStandbyFollowsItsPrimaryAndTakesNoWrites(t *testing.T) {
	primary := testenv.StartPostgres(t)
	standby := testenv.StartPostgresStandby(t, primary)
	require.NoError(t, putPostgres(within(t), primary.Addr(), "k", "v"))
	require.Eventually(t, func() bool {
		got, err := getPostgres(within(t), standby.Addr(), "k")
		return err == nil && got == "v"
	}, 30*time.Second, 50*time.Millisecond)

	var refused *pgconn.PgError
	require.ErrorAs(t, putPostgres(within(t), standby.Addr(), "k", "w"), &refused)
	require.Equal(t, "25006", refused.Code, "read_only_sql_transaction")
}

func doPostgres(ctx context.Context, addr, database, statement string) error {
	conn, err := pgx.Connect(ctx, testenv.PostgresURL(addr, database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func doMariaDB(ctx context.Context, addr, database, statement string) error {
	return withMariaDB(addr, database, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

func openMariaDB(t testing.TB, addr, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", testenv.MySQLDSN(addr, database))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func putPostgres(ctx context.Context, addr, key, value string) error {
	conn, err := pgx.Connect(ctx, testenv.PostgresURL(addr, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS pairs (k text PRIMARY KEY, v text)")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "INSERT INTO pairs VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = $2", key, value)
	return err
}

// getPostgres takes a missing table for one without rows.
func getPostgres(ctx context.Context, addr, key string) (value string, err error) {
	conn, err := pgx.Connect(ctx, testenv.PostgresURL(addr, "postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT v FROM pairs WHERE k = $1", key).Scan(&value)
	var absent *pgconn.PgError
	if errors.Is(err, pgx.ErrNoRows) || errors.As(err, &absent) && absent.Code == "42P01" {
		return "", nil
	}
	return value, err
}

func putMariaDB(ctx context.Context, addr, key, value string) error {
	return withMariaDB(addr, "", func(db *sql.DB) error {
		for _, statement := range []string{
			"CREATE DATABASE IF NOT EXISTS testenv",
			"CREATE TABLE IF NOT EXISTS testenv.pairs (k VARCHAR(200) PRIMARY KEY, v TEXT)",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		_, err := db.ExecContext(ctx, "REPLACE INTO testenv.pairs VALUES (?, ?)", key, value)
		return err
	})
}

// getMariaDB takes a missing table for one without rows.
func getMariaDB(ctx context.Context, addr, key string) (value string, err error) {
	err = withMariaDB(addr, "", func(db *sql.DB) error {
		err := db.QueryRowContext(ctx, "SELECT v FROM testenv.pairs WHERE k = ?", key).Scan(&value)
		var absent *mysql.MySQLError
		if errors.Is(err, sql.ErrNoRows) || errors.As(err, &absent) && (absent.Number == 1049 || absent.Number == 1146) {
			return nil
		}
		return err
	})
	return value, err
}

func withMariaDB(addr, database string, do func(*sql.DB) error) error {
	config, err := mysql.ParseDSN(testenv.MySQLDSN(addr, database))
	if err != nil {
		return err
	}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(do(db), db.Close())
}
