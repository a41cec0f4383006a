package stores

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	sqlkv "github.com/electkv/election/backends/sql"
)

func mysqlKind() kind {
	return kind{
		name: "mysql", alias: "mariadb", form: "mysql://user@host:port/database", parse: parseMySQL,
		params:  append(tlsParams(), "tls", "table", expiryParam),
		help:    [][2]string{{"mysql://user@host:port/database", "MySQL, MariaDB (or mariadb://)"}},
		secrets: []string{"MYSQL_PWD"}, instead: "MYSQL_PWD",
		besides: `mysql takes tls=true, and the parameters for TLS.`,
		called:  "MySQL or MariaDB", answers: isMySQL, refuses: func(err error) bool { return mysqlRefusal(err).forGood() },
		releasable: true,
	}
}

func parseMySQL(l *location) (opener, error) {
	switch {
	case len(l.hosts) > 1:
		return nil, errors.New("several hosts; name the one that is written to, or a proxy before them")
	case len(l.hosts) == 0 && l.env("MYSQL_HOST") == "":
		return nil, errors.New("no host, and no MYSQL_HOST")
	case len(l.hosts) == 0:
		host := l.env("MYSQL_HOST")
		if err := checkHost(host); err != nil {
			return nil, errors.New("MYSQL_HOST is not a host")
		}
		l.hosts = []string{host}
	}
	database := strings.TrimPrefix(l.path, "/")
	if database == "" || strings.Contains(database, "/") {
		return nil, errors.New("the path is not the name of a database")
	}
	if l.user == "" {
		return nil, errors.New("no user: write user@")
	}
	secure, err := l.flag("tls")
	if err != nil {
		return nil, err
	}
	l.tls = secure
	config := mysql.NewConfig()
	if config.TLS, err = l.tlsConfig(tlsSource{}); err != nil {
		return nil, err
	}
	config.User, config.Passwd, config.Net, config.DBName = l.user, l.password, "tcp", database
	if config.Passwd == "" {
		config.Passwd = l.env("MYSQL_PWD")
	}
	port := l.env("MYSQL_TCP_PORT")
	if port == "" {
		port = "3306"
	}
	config.Addr = l.addresses(port)[0]
	config.Timeout = 5 * time.Second
	config.InterpolateParams = true // or else each statement is two messages
	// A statement that waits for a lock goes on when nobody waits for it any more.
	config.Params = map[string]string{"innodb_lock_wait_timeout": "5"}
	config.Logger = &mysql.NopLogger{} // what is wrong comes back as an error as well
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return l.inDatabase(mysqlDialect(), sqlkv.Options{Table: l.query.Get("table")}, connector, "", config.Addr)
}

func mysqlDialect() dialect {
	return dialect{Dialect: sqlkv.MySQL, mark: "`", place: "?", key: func(name string) any { return []byte(name) }, refusal: mysqlRefusal, examine: examineMySQL}
}

func mysqlRefusal(err error) refusal {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return map[uint16]refusal{
			1044: denied,     // ER_DBACCESS_DENIED_ERROR
			1142: denied,     // ER_TABLEACCESS_DENIED_ERROR
			1143: denied,     // ER_COLUMNACCESS_DENIED_ERROR
			1227: denied,     // ER_SPECIFIC_ACCESS_DENIED_ERROR
			1290: readOnly,   // ER_OPTION_PREVENTS_STATEMENT
			1792: readOnly,   // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
			1836: readOnly,   // ER_READ_ONLY_MODE
			1049: noDatabase, // ER_BAD_DB_ERROR
			1054: noColumn,   // ER_BAD_FIELD_ERROR
			1146: noTable,    // ER_NO_SUCH_TABLE
			1045: noLogin,    // ER_ACCESS_DENIED_ERROR
			1698: noLogin,    // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
		}[e.Number]
	}
	return 0
}

func examineMySQL(ctx context.Context, db *Database, ttl time.Duration) ([]Finding, error) {
	found, err := db.pairs(ctx, `SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment',
		'innodb_flush_log_at_trx_commit', 'innodb_lock_wait_timeout', 'tx_isolation', 'transaction_isolation',
		'wsrep_on', 'group_replication_group_name', 'log_bin', 'sync_binlog')`)
	if err != nil {
		return nil, err
	}
	findings := []Finding{{Level: OK, Subject: "version", Found: found["version"] + " (" + found["version_comment"] + ")"}}
	findings = append(findings, judge(mysqlSettings(), found)...)
	if !strings.Contains(strings.ToLower(found["version"]), "mariadb") {
		findings = append(findings, mysqlPatience(found["innodb_lock_wait_timeout"], ttl))
	}
	if f, ok := mysqlCluster(found); ok {
		findings = append(findings, f)
	}
	f, err := mysqlTable(ctx, db)
	if err != nil {
		return findings, err
	}
	return append(findings, f, db.examineTable(ctx)), nil
}

func mysqlSettings() []setting {
	const isolation = "a guard of the leader's transactions reads what may not be committed"
	levels := []string{"read-committed", "repeatable-read", "serializable"}
	return []setting{
		{
			"innodb_flush_log_at_trx_commit", []string{"1"},
			"after a crash a record that was acknowledged may be forgotten: then another leads while its owner trusts it",
			"set innodb_flush_log_at_trx_commit = 1",
		},
		{"tx_isolation", levels, isolation, "use READ-COMMITTED"},
		{"transaction_isolation", levels, isolation, "use READ-COMMITTED"},
	}
}

// mysqlPatience says how long a refresh may hang on a row that another transaction
// has locked. MariaDB is told with each statement.
func mysqlPatience(seconds string, ttl time.Duration) Finding {
	f := Finding{Level: OK, Subject: "innodb_lock_wait_timeout", Found: seconds + " s"}
	if n, err := strconv.Atoi(seconds); err != nil || time.Duration(n)*time.Second > ttl/3 {
		f.Level = Warn
		f.Why = "a statement that meets a locked row waits longer than a refresh may take, and keeps its connection"
		f.Advice = "SET GLOBAL innodb_lock_wait_timeout = 1, or in the session of candidates"
	}
	return f
}

// mysqlCluster says what there is besides this server.
func mysqlCluster(found map[string]string) (Finding, bool) {
	switch {
	case strings.EqualFold(found["wsrep_on"], "on"):
		return Finding{
			Warn, "cluster", "Galera", "what another node wrote shows here a moment later, and a row that two nodes write costs one of them its transaction",
			"let all candidates use one node at a time, and set wsrep_sync_wait = 3 for their user",
		}, true
	case found["group_replication_group_name"] != "":
		return Finding{
			Warn, "cluster", "Group Replication", "with several primaries, what another node wrote shows here a moment later",
			"use one primary, and group_replication_consistency = BEFORE_ON_PRIMARY_FAILOVER",
		}, true
	case strings.EqualFold(found["log_bin"], "on"):
		return Finding{
			Warn, "replication", "there is a binary log: replicas may follow",
			"a replica that is promoted may not know of the last records: then another leads while the owner trusts its lease, and tokens may be given twice",
			"let commits wait for a replica (semi-synchronous replication), or keep elections closed for a TTL after a failover",
		}, true
	}
	return Finding{}, false
}

// mysqlTable says what keeps the table.
func mysqlTable(ctx context.Context, db *Database) (Finding, error) {
	var engine string
	err := db.QueryRowContext(ctx, `SELECT COALESCE(engine, table_type) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = ?`, db.options.Table).Scan(&engine)
	f := Finding{Level: OK, Subject: "engine", Found: engine}
	if err == nil && !strings.EqualFold(engine, "InnoDB") {
		f.Level, f.Why = Warn, "another engine than InnoDB may lose what it acknowledged, and knows no transactions to guard what the leader writes"
		f.Advice = "ALTER TABLE … ENGINE = InnoDB"
	}
	return f, err
}

// isMySQL knows the first packet, which MySQL sends before it is asked: the version of
// the handshake, or a refusal.
func isMySQL(_ context.Context, _ string, reply []byte) bool {
	return len(reply) >= 5 && reply[3] == 0 && (reply[4] == 10 || reply[4] == 255)
}
