package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
)

// passing is how long one of several hosts is waited for until the next is asked. One
// that is frozen or cut off would keep all attempts from the others.
const passing = time.Second

// libpqParams are the URL parameters of PostgreSQL that libpq knows as well.
func libpqParams() []string {
	return []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "application_name"}
}

func postgresKind() kind {
	return kind{
		name: "postgres", alias: "postgresql", form: "postgres://user@host:port/database", parse: parsePostgres,
		params:  append(libpqParams(), "default_query_exec_mode", "schema", "table", expiryParam),
		help:    [][2]string{{"postgres://user@host:port/database", "PostgreSQL (or postgresql://)"}},
		secrets: []string{"PGPASSWORD", "PGSSLPASSWORD"}, instead: "PGPASSWORD or PGPASSFILE",
		others: "PGPASSFILE, PGSSLMODE and all others of libpq",
		besides: `postgres has schema=NAME, the schema of its table. As libpq and pgx do, it takes
sslmode, sslrootcert, sslcert, sslkey, target_session_attrs, application_name and
default_query_exec_mode.`,
		called: "PostgreSQL", answers: isPostgres, refuses: func(err error) bool { return postgresRefusal(err).forGood() },
		releasable: true,
	}
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
	options := sqlkv.Options{Schema: l.query.Get("schema"), Table: l.query.Get("table"), Driver: pgxdriver.Driver{}}
	return l.inDatabase(postgresDialect(), options, stdlib.GetConnector(*config), "", l.addresses("5432")...)
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

func postgresDialect() dialect {
	return dialect{Dialect: sqlkv.PostgreSQL, mark: `"`, place: "$1", key: asText, refusal: postgresRefusal, examine: examinePostgres}
}

func postgresRefusal(err error) refusal {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return map[string]refusal{
			"42501": denied,   // insufficient_privilege
			"25006": readOnly, // read_only_sql_transaction
			"3D000": noDatabase,
			"3F000": noSchema,
			"42703": noColumn,
			"42P01": noTable, // undefined_table
			"28P01": noLogin, // invalid_password
			"28000": noLogin, // invalid_authorization_specification
		}[e.Code]
	}
	return 0
}

func examinePostgres(ctx context.Context, db *Database, _ time.Duration) ([]Finding, error) {
	found, err := db.pairs(ctx, `SELECT name, setting FROM pg_settings WHERE name IN
		('server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation')`)
	if err != nil {
		return nil, err
	}
	findings := []Finding{{Level: OK, Subject: "version", Found: "PostgreSQL " + found["server_version"]}}
	findings = append(findings, judge(postgresSettings(), found)...)
	for _, look := range []func(context.Context, *Database) (Finding, error){
		postgresStandbys, postgresTable, postgresPooler,
	} {
		f, err := look(ctx, db)
		if err != nil {
			return findings, err
		}
		findings = append(findings, f)
	}
	return append(findings, db.examineTable(ctx)), nil
}

func postgresSettings() []setting {
	const forgets = "a record that was acknowledged may be forgotten: then another leads while its owner trusts it"
	return []setting{
		{
			"synchronous_commit", []string{"on", "remote_apply", "remote_write", "local"},
			"after a crash of the server " + forgets, "ALTER ROLE … SET synchronous_commit = on for the user of this URL",
		},
		{"fsync", []string{"on"}, "after a crash of the host " + forgets + ", and the database may be damaged", "set fsync = on"},
		{"full_page_writes", []string{"on"}, "after a crash of the host the database may be damaged", "set full_page_writes = on"},
		{
			"default_transaction_isolation", []string{"read committed", "repeatable read", "serializable"},
			"a guard of the leader's transactions reads what may not be committed", "use read committed",
		},
	}
}

// postgresStandbys says what a failover may lose. A standby itself is refused by
// the store.
func postgresStandbys(ctx context.Context, db *Database) (Finding, error) {
	var all, waited int
	err := db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')
			AND current_setting('synchronous_commit') NOT IN ('off', 'local'))
		FROM pg_stat_replication WHERE state IS NOT NULL`).Scan(&all, &waited)
	f := Finding{Level: OK, Subject: "standbys"}
	switch {
	case all == 0:
		f.Found = "none, or none that this user may see"
	case waited > 0:
		f.Found = fmt.Sprintf("%d, and commits wait for %d of them", all, waited)
	default:
		f.Level, f.Found = Warn, fmt.Sprintf("%d, and no commit waits for them", all)
		f.Why = "a standby that is promoted may not know of the last records: then another leads while the owner trusts its lease, and tokens may be given twice"
		f.Advice = "set synchronous_standby_names, or keep elections closed for a TTL after a failover"
	}
	return f, err
}

// postgresTable says what becomes of the table in a crash, and what stands between
// it and its users.
func postgresTable(ctx context.Context, db *Database) (Finding, error) {
	var persistence string
	var policies, triggers bool
	err := db.QueryRowContext(ctx, `SELECT CAST(relpersistence AS text), relrowsecurity,
			EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)
		FROM pg_class WHERE oid = to_regclass($1)`, db.table()).Scan(&persistence, &policies, &triggers)
	f := Finding{Level: OK, Subject: "table", Found: db.table() + " is logged"}
	switch {
	case err != nil:
	case persistence != "p":
		f = Finding{
			Warn, "table", db.table() + " is unlogged or temporary", "a crash of the server empties it: another leads at once, and tokens begin anew",
			"ALTER TABLE … SET LOGGED",
		}
	case policies || triggers:
		f = Finding{
			Warn, "table", db.table() + " has policies or triggers", "the store does not know what they hide or change",
			"keep records in a table of their own",
		}
	}
	return f, err
}

// postgresPooler tells whether somebody stands between this client and the server:
// it gives its clients process ids of its own.
func postgresPooler(ctx context.Context, db *Database) (Finding, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return Finding{}, err
	}
	defer conn.Close()
	var server uint32
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&server); err != nil {
		return Finding{}, err
	}
	var client uint32
	if err := conn.Raw(func(driver any) error {
		client = driver.(*stdlib.Conn).Conn().PgConn().PID()
		return nil
	}); err != nil {
		return Finding{}, err
	}
	if client == server {
		return Finding{Level: OK, Subject: "changes", Found: "the server tells candidates of them (LISTEN)"}, nil
	}
	return Finding{
		Warn, "changes", "a pooler such as PgBouncer stands between: candidates look for them about once a second",
		"that is later and dearer than to be told, and no less safe", "let candidates connect to the server itself",
	}, nil
}

// isPostgres asks whether TLS is to be had, which PostgreSQL answers with one byte. It
// hangs up on the question before.
func isPostgres(ctx context.Context, addr string, reply []byte) bool {
	if len(reply) > 0 {
		return false
	}
	reply = ask(ctx, addr, "\x00\x00\x00\x08\x04\xd2\x16\x2f")
	return len(reply) == 1 && (reply[0] == 'S' || reply[0] == 'N')
}
