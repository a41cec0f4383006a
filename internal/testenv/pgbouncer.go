//go:build unix

package testenv

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/electkv/election/internal/testenv/install"
)

// StartPgBouncer starts a PgBouncer of the test's own before the PostgreSQL at
// upstream, host:port, where every database is to be had by its own name. Its
// pools are by transaction: a client has a connection to the server no longer
// than a transaction takes, and the next time another. The settings are lines of
// the section "pgbouncer" ("pool_mode = session"); they win over the ones that
// testenv gives.
func StartPgBouncer(t testing.TB, upstream string, settings ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newPgBouncer(upstream, settings...) })
}

func newPgBouncer(upstream string, settings ...string) (*Server, error) {
	path, err := install.PgBouncer()
	if err != nil {
		return nil, err
	}
	owner, err := accountFor("postgres")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(upstream)
	if err != nil {
		return nil, err
	}
	s, err := newServer("pgbouncer", path, pgbouncerHealthy)
	if err != nil {
		return nil, err
	}
	s.account = owner
	users := filepath.Join(s.dir, "users")
	if err := os.WriteFile(users, fmt.Appendf(nil, "%q \"\"\n", PostgresUser), 0o644); err != nil {
		return nil, err
	}
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s user=%s", host, port, PostgresUser),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", s.port.number),
		"unix_socket_dir =",
		"auth_type = trust",
		"auth_file = " + users,
		"admin_users = " + PostgresUser,
		"pool_mode = transaction",
		"max_client_conn = 300",
		"default_pool_size = 20",
	}, settings...)
	file := filepath.Join(s.dir, "pgbouncer.ini")
	s.args = []string{file}
	return s, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// pgbouncerHealthy succeeds once PgBouncer says whether it does TLS, whatever
// becomes of the server behind it.
func pgbouncerHealthy(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	// An SSLRequest: its length, and the code that stands where a version would.
	if _, err := conn.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}
