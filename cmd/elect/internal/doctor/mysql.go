package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func mysql(ctx context.Context, store *storeurl.Store, ttl time.Duration) ([]Finding, error) {
	db := store.SQL
	found, err := pairs(ctx, db, `SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment',
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
	return append(findings, f, table(ctx, db)), nil
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
func mysqlTable(ctx context.Context, db *storeurl.Database) (Finding, error) {
	var engine string
	err := db.QueryRowContext(ctx, `SELECT COALESCE(engine, table_type) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = ?`, db.Options.Table).Scan(&engine)
	f := Finding{Level: OK, Subject: "engine", Found: engine}
	if err == nil && !strings.EqualFold(engine, "InnoDB") {
		f.Level, f.Why = Warn, "another engine than InnoDB may lose what it acknowledged, and knows no transactions to guard what the leader writes"
		f.Advice = "ALTER TABLE … ENGINE = InnoDB"
	}
	return f, err
}
