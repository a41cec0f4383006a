package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func postgres(ctx context.Context, store *storeurl.Store) ([]Finding, error) {
	db := store.SQL
	found, err := pairs(ctx, db, `SELECT name, setting FROM pg_settings WHERE name IN
		('server_version', 'fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation')`)
	if err != nil {
		return nil, err
	}
	findings := []Finding{{Level: OK, Subject: "version", Found: "PostgreSQL " + found["server_version"]}}
	findings = append(findings, judge(postgresSettings(), found)...)
	for _, look := range []func(context.Context, *storeurl.Database) (Finding, error){
		postgresStandbys, postgresTable, postgresPooler,
	} {
		f, err := look(ctx, db)
		if err != nil {
			return findings, err
		}
		findings = append(findings, f)
	}
	return append(findings, table(ctx, db)), nil
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
func postgresStandbys(ctx context.Context, db *storeurl.Database) (Finding, error) {
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
func postgresTable(ctx context.Context, db *storeurl.Database) (Finding, error) {
	var persistence string
	var policies, triggers bool
	err := db.QueryRowContext(ctx, `SELECT CAST(relpersistence AS text), relrowsecurity,
			EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)
		FROM pg_class WHERE oid = to_regclass($1)`, db.Table()).Scan(&persistence, &policies, &triggers)
	f := Finding{Level: OK, Subject: "table", Found: db.Table() + " is logged"}
	switch {
	case err != nil:
	case persistence != "p":
		f = Finding{
			Warn, "table", db.Table() + " is unlogged or temporary", "a crash of the server empties it: another leads at once, and tokens begin anew",
			"ALTER TABLE … SET LOGGED",
		}
	case policies || triggers:
		f = Finding{
			Warn, "table", db.Table() + " has policies or triggers", "what they hide or change, the store does not know of",
			"keep records in a table of their own",
		}
	}
	return f, err
}

// postgresPooler tells whether somebody stands between this client and the server:
// it gives its clients process ids of its own.
func postgresPooler(ctx context.Context, db *storeurl.Database) (Finding, error) {
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
