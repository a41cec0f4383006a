package install

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPostgres means that this machine has no PostgreSQL server. Its text says
// how to come by one.
var ErrNoPostgres = errors.New("postgres and initdb are neither in PATH nor where packages put them: install the server " +
	"(Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; macOS: brew install postgresql) " +
	"or set ELECTION_TEST_POSTGRES=host:port to a server that runs")

// ErrNoPsql means that this machine has no client of PostgreSQL. Its text says how
// to come by one.
var ErrNoPsql = errors.New("psql is neither in PATH nor beside postgres: install it " +
	"(Debian, Ubuntu: apt-get install postgresql-client; Fedora: dnf install postgresql; macOS: brew install libpq)")

// ErrNoPgBouncer means that this machine has no PgBouncer. Its text says how to
// come by one.
var ErrNoPgBouncer = errors.New("pgbouncer is not in PATH: install it " +
	"(Debian, Ubuntu: apt-get install pgbouncer; Fedora: dnf install pgbouncer; macOS: brew install pgbouncer)")

// Postgres returns the path of the program postgres, in a folder that has initdb
// and pg_basebackup as well, or ErrNoPostgres. It is looked for in PATH, then
// among the packages' folders, newest version first.
func Postgres() (string, error) {
	var found []string
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	found = append(found, packaged("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres")...)
	if path, ok := unpacked("postgres"); ok {
		found = append(found, path)
	}
	for _, path := range found {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		dir := filepath.Dir(path)
		if isExecutable(path) && isExecutable(filepath.Join(dir, "initdb")) && isExecutable(filepath.Join(dir, "pg_basebackup")) {
			return path, nil
		}
	}
	return "", ErrNoPostgres
}

// Psql returns the path of psql, PostgreSQL's client, or ErrNoPsql. The packages of
// the server bring it along.
func Psql() (string, error) {
	if server, err := Postgres(); err == nil {
		if path := filepath.Join(filepath.Dir(server), "psql"); isExecutable(path) {
			return path, nil
		}
	}
	return lookFor(ErrNoPsql, "psql")
}

// packaged returns the files that match, those with the largest number in their
// path first.
func packaged(patterns ...string) []string {
	var found []string
	for _, pattern := range patterns {
		match, _ := filepath.Glob(pattern) // the pattern is well formed
		found = append(found, match...)
	}
	slices.SortFunc(found, func(a, b string) int { return versionIn(b) - versionIn(a) })
	return found
}

// versionIn returns the first number in a path, or 0.
func versionIn(path string) int {
	start := strings.IndexAny(path, "0123456789")
	if start < 0 {
		return 0
	}
	digits := path[start:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// PgBouncer returns the path of pgbouncer, or ErrNoPgBouncer.
func PgBouncer() (string, error) {
	return lookFor(ErrNoPgBouncer, "pgbouncer", "/usr/sbin")
}

// lookFor returns the path of a program that is in PATH, in one of the folders for what only
// root is thought to run, or unpacked for the tests; or else missing.
func lookFor(missing error, program string, folders ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		if path := filepath.Join(folder, program); isExecutable(path) {
			return path, nil
		}
	}
	if path, ok := unpacked(program); ok {
		return path, nil
	}
	return "", missing
}
