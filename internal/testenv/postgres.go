//go:build unix

package testenv

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/electkv/election/internal/testenv/install"
)

// PostgresUser is who may do everything in PostgreSQL, without a password.
const PostgresUser = "postgres"

// StartPostgresStandby starts a PostgreSQL server of the test's own that follows
// the primary, as a standby that may be read.
func StartPostgresStandby(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) {
		s, err := newPostgres(args...)
		if err != nil {
			return nil, err
		}
		s.seed = func(dir string) error {
			basebackup := filepath.Join(filepath.Dir(s.path), "pg_basebackup")
			return s.account.run(s.dir, basebackup, "--dbname="+PostgresURL(primary.Addr(), "postgres"), "--pgdata="+dir,
				"--wal-method=stream", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
		}
		return s, nil
	})
}

func newPostgres(args ...string) (*Server, error) {
	path, err := install.Postgres()
	if err != nil {
		return nil, err
	}
	owner, err := accountFor("postgres")
	if err != nil {
		return nil, err
	}
	s, err := newServer("postgres", path, postgresHealthy)
	if err != nil {
		return nil, err
	}
	s.account = owner
	s.family = true
	s.seed = template{
		server: path,
		asks:   []string{"--version"},
		owner:  owner,
		setup:  filepath.Join(filepath.Dir(path), "initdb"),
		args: []string{"--pgdata=DATA", "--username=" + PostgresUser, "--auth=trust", "--encoding=UTF8",
			"--locale=C", "--wal-segsize=1", "--no-sync"},
	}.copyTo
	s.args = append([]string{
		"-D", s.dataDir(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(s.port.number),
		"-c", "unix_socket_directories=",
		"-c", "dynamic_shared_memory_type=mmap", // in the data folder, so that a kill leaves nothing
		"-c", "shared_buffers=16MB",
		"-c", "max_connections=300",
		"-c", "min_wal_size=4MB",
		"-c", "fsync=off",
		"-c", "jit=off",
	}, args...)
	return s, nil
}

// PostgresURL returns the URL of a database of the server at addr, or of the
// PgBouncer there: for pgx, and for elect.
func PostgresURL(addr, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", PostgresUser, addr, database)
}

// NewPostgresDatabase makes a database on the server at addr, and returns its
// name. It is dropped at the end of the test, unless the server is gone.
func NewPostgresDatabase(t testing.TB, addr string) string {
	t.Helper()
	name := databaseName()
	if err := postgresDo(addr, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		if err := postgresDo(addr, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Logf("testenv: %v", err)
		}
	})
	return name
}

// postgresDo carries out a statement on the server at addr.
func postgresDo(addr, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, PostgresURL(addr, "postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	if closed := conn.Close(ctx); err == nil {
		err = closed
	}
	return err
}

// postgresHealthy succeeds once PostgreSQL answers a query.
func postgresHealthy(ctx context.Context, addr string) error {
	conn, err := pgx.Connect(ctx, PostgresURL(addr, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}
