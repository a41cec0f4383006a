package storeurl

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	sqlkv "github.com/electkv/election/backends/sql"
)

// passing is how long one of several hosts is waited for until the next is asked. One
// that is frozen or cut off would keep all attempts from the others.
const passing = time.Second

// libpqParams are the URL parameters of PostgreSQL that libpq knows as well.
func libpqParams() []string {
	return []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "application_name"}
}

// postgresParams are the URL parameters of PostgreSQL.
func postgresParams() []string {
	return append(libpqParams(), "default_query_exec_mode", "schema", "table", expiryParam)
}

// parsePostgres leaves everything that the URL leaves out to the variables of
// libpq: PGPASSWORD, PGSSLMODE, PGPASSFILE and so on.
func parsePostgres(l *location) (opener, error) {
	if len(l.hosts) == 0 && l.env("PGHOST", "PGSERVICE") == "" {
		return nil, errors.New("no host, and no PGHOST")
	}
	database := strings.TrimPrefix(l.path, "/")
	if strings.Contains(database, "/") {
		return nil, errors.New("the path is more than the name of a database; table and schema are parameters")
	}
	if err := l.oneOf("target_session_attrs", "any", "read-write", "primary", "read-only", "standby", "prefer-standby"); err != nil {
		return nil, err
	}
	if err := l.oneOf("default_query_exec_mode", "exec", "simple_protocol", "describe_exec", "cache_describe", "cache_statement"); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(l.libpq(database))
	if err != nil {
		return nil, plainly(err)
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "elect"
	}
	if l.several("PGHOST") && config.ConnectTimeout == 0 {
		config.ConnectTimeout = passing
	}
	options := sqlkv.Options{Schema: l.query.Get("schema"), Table: l.query.Get("table")}
	return l.inDatabase(sqlkv.PostgreSQL, options, stdlib.GetConnector(*config), l.addresses("5432")...)
}

// several reports whether there is more than one host, in the URL or else in the
// variable.
func (l *location) several(variable string) bool {
	return len(l.hosts) > 1 || len(l.hosts) == 0 && strings.Contains(l.env(variable), ",")
}

// libpq returns the URL as a connection string of libpq.
func (l *location) libpq(database string) string {
	var words []string
	set := func(key, value string) {
		if value != "" {
			words = append(words, key+"='"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value)+"'")
		}
	}
	var hosts, ports []string
	for _, addr := range l.addresses("5432") {
		host, port, _ := splitPort(addr)
		hosts, ports = append(hosts, strings.Trim(host, "[]")), append(ports, port)
	}
	set("host", strings.Join(hosts, ","))
	set("port", strings.Join(ports, ","))
	set("user", l.user)
	set("password", l.password)
	set("dbname", database)
	for _, param := range libpqParams() {
		set(param, l.query.Get(param))
	}
	if l.several("PGHOST") && !l.query.Has("target_session_attrs") && l.env("PGTARGETSESSIONATTRS") == "" {
		set("target_session_attrs", "read-write") // no standby decides anything
	}
	// Without prepared statements it works through a pooler, which may give each
	// transaction another connection.
	mode := "exec"
	if l.query.Has("default_query_exec_mode") {
		mode = l.query.Get("default_query_exec_mode")
	}
	set("default_query_exec_mode", mode)
	return strings.Join(words, " ")
}

// plainly returns what is wrong with a connection string without the string.
func plainly(err error) error {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && parse.Unwrap() != nil {
		return parse.Unwrap()
	}
	return errors.New("the URL, or a variable such as PGSSLMODE, is malformed")
}
