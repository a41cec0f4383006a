//go:build unix

// Package testenv runs real servers for tests: etcd, Consul and Redis, alone or
// as clusters, PostgreSQL, MariaDB, PgBouncer and Prometheus, on free loopback ports, and
// breaks what is around them: the connections through a [Proxy], the packets of
// a [Host], the wall clock of [StartRedisWithClock] and its like, and a [Disk].
//
// [Etcd], [Consul], [Redis], [Postgres] and [MariaDB] give the address of a server that all tests of a
// process share; it is started when first asked for. Tests use names of their
// own in it, and do it no harm. [StartEtcd] and its like give a server of the
// test's own, which may be paused, killed, wiped and restarted.
//
// A missing server fails the test; it is never skipped. "make test" gets what is
// missing. Only a test that needs root is skipped, for anybody else.
//
// # Lifetime
//
// No server outlives the test process, however that ends, and no TestMain is
// needed for it: see guard. Nor does a network, a disk or what [Guard] was given.
// Servers of one test end with the test. While they run, they keep no goroutine
// in the test process busy, so goleak needs to ignore nothing. (A [Proxy] has
// goroutines until the test's cleanup: check for leaks in a cleanup registered
// before it.)
//
// # Settings
//
// The servers are set to decide fast and to save what they can do without:
//
//   - etcd elects its leader within about a second (heartbeat 100 ms, election
//     timeout 500 ms) and does not fsync. It grants no lease shorter than one
//     and a half election timeouts, rounded up to whole seconds: 1 s here, 2 s
//     with etcd's default settings.
//   - Consul runs as a real server, not in development mode, with
//     session_ttl_min lowered from 10 s to 1 s and raft_multiplier 1. It still
//     frees a session only after up to twice its TTL.
//   - Redis logs every write before it replies (append-only file), so that what
//     it acknowledged outlives a kill; it does not fsync.
//   - PostgreSQL and MariaDB write what they commit before they reply, so that it
//     outlives a kill; they do not sync it. They refuse root, so for root they run
//     as postgres and mysql, or as nobody. [PostgresUser] and [MySQLUser] need no
//     password. What is set up once is copied for each server.
//   - Sentinels take a primary for failed after a second, and nodes of a Redis
//     Cluster each other after three.
package testenv

import (
	"os"
	"sync"
	"testing"
)

var (
	sharedEtcd   = sync.OnceValues(func() (string, error) { return startShared(func() (*Server, error) { return newEtcd() }) })
	sharedConsul = sync.OnceValues(func() (string, error) { return startShared(func() (*Server, error) { return newConsul() }) })
	sharedRedis  = sync.OnceValues(func() (string, error) { return startShared(func() (*Server, error) { return newRedis() }) })

	sharedPostgres = sync.OnceValues(func() (string, error) { return startShared(func() (*Server, error) { return newPostgres() }) })
	sharedMariaDB  = sync.OnceValues(func() (string, error) { return startShared(func() (*Server, error) { return newMariaDB() }) })
)

// Etcd returns the client address, host:port, of an etcd that the tests of this
// process share, or what ELECTION_TEST_ETCD says.
func Etcd(t testing.TB) string {
	t.Helper()
	return shared(t, "ELECTION_TEST_ETCD", sharedEtcd)
}

// Consul returns the HTTP address, host:port, of a Consul server that the tests
// of this process share, or what ELECTION_TEST_CONSUL says.
func Consul(t testing.TB) string {
	t.Helper()
	return shared(t, "ELECTION_TEST_CONSUL", sharedConsul)
}

// Redis returns the address, host:port, of a Redis that the tests of this
// process share, or what ELECTION_TEST_REDIS says.
func Redis(t testing.TB) string {
	t.Helper()
	return shared(t, "ELECTION_TEST_REDIS", sharedRedis)
}

// Postgres returns the address, host:port, of a PostgreSQL that the tests of this
// process share, or what ELECTION_TEST_POSTGRES says. Each test takes a database
// of its own there: see [NewPostgresDatabase].
func Postgres(t testing.TB) string {
	t.Helper()
	return shared(t, "ELECTION_TEST_POSTGRES", sharedPostgres)
}

// MariaDB returns the address, host:port, of a MariaDB that the tests of this
// process share, or what ELECTION_TEST_MYSQL says. Each test takes a database of
// its own there: see [NewMySQLDatabase].
func MariaDB(t testing.TB) string {
	t.Helper()
	return shared(t, "ELECTION_TEST_MYSQL", sharedMariaDB)
}

func shared(t testing.TB, variable string, start func() (string, error)) string {
	t.Helper()
	if addr := os.Getenv(variable); addr != "" {
		return addr
	}
	addr, err := start()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return addr
}

// startShared starts a server that only the end of the process stops.
func startShared(build func() (*Server, error)) (string, error) {
	s, err := build()
	if err != nil {
		return "", err
	}
	if err := s.start(); err != nil {
		return "", err
	}
	return s.Addr(), nil
}

// StartEtcd starts an etcd of the test's own. The args are flags as on its
// command line ("--quota-backend-bytes=16777216"); they win over the ones that
// testenv gives.
func StartEtcd(t testing.TB, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newEtcd(args...) })
}

// StartConsul starts a Consul server of the test's own. The settings are the
// agent's, by their names in JSON ({"data_dir": "/disk"}); each takes the whole
// place of the one of its name that testenv gives.
func StartConsul(t testing.TB, settings ...map[string]any) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newConsul(settings...) })
}

// StartRedis starts a Redis of the test's own. The args are settings as on its
// command line ("--maxmemory", "10mb"); they win over the ones that testenv
// gives.
func StartRedis(t testing.TB, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newRedis(args...) })
}

// StartPostgres starts a PostgreSQL of the test's own. The args are flags as on
// its command line ("-c", "synchronous_commit=off"); they win over the ones that
// testenv gives.
func StartPostgres(t testing.TB, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newPostgres(args...) })
}

// StartMariaDB starts a MariaDB of the test's own. The args are flags as on its
// command line ("--read-only"); they win over the ones that testenv gives.
func StartMariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newMariaDB(args...) })
}
