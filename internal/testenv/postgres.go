//go:build unix

package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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

// StartPostgresWithTLS starts a PostgreSQL of the test's own that speaks TLS with a
// certificate of the authority for hosts, and knows clients by the same authority. It
// takes connections without TLS as well, unless the rules (lines of pg_hba.conf) say
// otherwise; PostgresUser needs neither, and no password.
func StartPostgresWithTLS(t testing.TB, authority *Authority, hosts []string, rules ...string) *Server {
	t.Helper()
	cert, key, ca := authority.Files(hosts...)
	return startOwn(t, func() (*Server, error) {
		s, err := newPostgres()
		if err != nil {
			return nil, err
		}
		// The key is to be the server's own, so they are where what it has is.
		for setting, from := range map[string]string{"ssl_cert_file": cert, "ssl_key_file": key, "ssl_ca_file": ca} {
			text, err := os.ReadFile(from)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(s.dir, setting)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return nil, err
			}
			s.args = append(s.args, "-c", setting+"="+file)
		}
		file := filepath.Join(s.dir, "hba")
		lines := append([]string{"host all " + PostgresUser + " all trust"}, rules...)
		s.args = append(s.args, "-c", "ssl=on", "-c", "hba_file="+file)
		return s, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
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
		"-c", "max_connections=1000",
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
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := postgresDo(ctx, addr, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := postgresDo(ctx, addr, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Logf("testenv: %v", err)
		}
	})
	return name
}

// postgresDo carries out a statement on the server at addr.
func postgresDo(ctx context.Context, addr, statement string) error {
	psql, err := install.Psql()
	if err != nil {
		return err
	}
	return say(ctx, psql, "--no-psqlrc", "--no-password", "--quiet", "--command="+statement, PostgresURL(addr, "postgres"))
}

// postgresHealthy succeeds once PostgreSQL answers a query.
func postgresHealthy(ctx context.Context, addr string) error { return postgresDo(ctx, addr, "SELECT") }
