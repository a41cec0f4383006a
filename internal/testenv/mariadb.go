//go:build unix

package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/electkv/election/internal/testenv/install"
)

// MySQLUser is who may do everything in MariaDB, without a password.
const MySQLUser = "root"

// noDefaults keeps the machine's own settings, and what is wrong with them, out of
// the tests. It has to come first.
const noDefaults = "--no-defaults"

// everybody lets the user in from wherever the server listens, each time that it
// starts.
const everybody = `CREATE USER IF NOT EXISTS 'root'@'%';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;
`

func newMariaDB(args ...string) (*Server, error) {
	path, setup, err := install.MariaDB()
	if err != nil {
		return nil, err
	}
	owner, err := accountFor("mysql")
	if err != nil {
		return nil, err
	}
	s, err := newServer("mariadb", path, mysqlHealthy)
	if err != nil {
		return nil, err
	}
	s.account = owner
	small := []string{"--innodb-log-file-size=8M", "--innodb-flush-method=nosync"}
	s.seed = template{
		server: path,
		asks:   []string{noDefaults, "--version"},
		owner:  owner,
		setup:  setup,
		args: append([]string{noDefaults, "--datadir=DATA", "--auth-root-authentication-method=normal",
			"--skip-test-db", "--innodb-data-file-path=ibdata1:4M:autoextend", "--innodb-autoextend-increment=1"}, small...),
	}.copyTo
	init := filepath.Join(s.dir, "init.sql")
	if err := os.WriteFile(init, []byte(everybody), 0o644); err != nil {
		return nil, err
	}
	s.args = append([]string{
		noDefaults,
		"--datadir=" + s.dataDir(),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(s.port.number),
		"--socket=" + filepath.Join(s.dir, "socket"),
		"--pid-file=" + filepath.Join(s.dir, "pid"),
		"--tmpdir=" + s.dir,
		"--init-file=" + init,
		"--skip-name-resolve",
		"--innodb-data-file-path=ibdata1:4M:autoextend",
		"--innodb-autoextend-increment=1",
		"--innodb-buffer-pool-size=16M",
		"--innodb-flush-log-at-trx-commit=1",
		"--max-connections=1000",
	}, append(small, args...)...)
	return s, nil
}

// MySQLDSN returns the data source name, for go-sql-driver, of a database of the
// server at addr. An empty database is none.
func MySQLDSN(addr, database string) string {
	return fmt.Sprintf("%s@tcp(%s)/%s", MySQLUser, addr, database)
}

// NewMySQLDatabase makes a database on the server at addr, and returns its name.
// It is dropped at the end of the test, unless the server is gone.
func NewMySQLDatabase(t testing.TB, addr string) string {
	t.Helper()
	name := databaseName()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := mysqlDo(ctx, addr, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		// What still holds a lock there holds the drop up.
		if err := mysqlDo(ctx, addr, "SET lock_wait_timeout = 5", "DROP DATABASE "+name); err != nil {
			t.Logf("testenv: %v", err)
		}
	})
	return name
}

// databaseName returns a name that no database has yet.
func databaseName() string { return "election_" + strings.ToLower(rand.Text()[:12]) }

// mysqlDo carries out statements on a connection of its own to the server at
// addr.
func mysqlDo(ctx context.Context, addr string, statements ...string) error {
	client, err := install.MariaDBClient()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return say(ctx, client, noDefaults, "--protocol=tcp", "--loose-skip-ssl", "--host="+host, "--port="+port,
		"--user="+MySQLUser, "--batch", "--execute="+strings.Join(statements, "; "))
}

// mysqlHealthy succeeds once the server answers a query.
func mysqlHealthy(ctx context.Context, addr string) error { return mysqlDo(ctx, addr, "DO 1") }
