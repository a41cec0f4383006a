package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

// database looks at what a store of SQL rests on. The table is there: the round
// trip came before.
func database(ctx context.Context, store *storeurl.Store, ttl time.Duration) []Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("no answer within %v", callTime))
	defer cancel()
	findings := []Finding{databaseClock(store)}
	var found []Finding
	var err error
	switch store.SQL.Dialect {
	case sqlkv.PostgreSQL:
		found, err = postgres(ctx, store)
	case sqlkv.MySQL:
		found, err = mysql(ctx, store, ttl)
	case sqlkv.SQLite:
		found, err = sqlite(ctx, store)
	}
	findings = append(findings, found...)
	if err != nil {
		findings = append(findings, Finding{Level: Warn, Subject: "settings", Found: "unknown: " + err.Error(), Advice: "let this user read them to learn more"})
	}
	return findings
}

// databaseClock says whose clock ends a record.
func databaseClock(store *storeurl.Store) Finding {
	switch {
	case store.Observed:
		return Finding{Level: OK, Subject: "clock", Found: "candidates judge expiry by their own clocks; the server's is not asked"}
	case store.SQL.Dialect == sqlkv.SQLite:
		return fileClock()
	}
	return Finding{
		Warn, "clock", "expiry runs on the server's wall clock",
		"if it jumps forward, a second leader is elected while the first still trusts its lease",
		"let the server's clock be slewed, never stepped, or have candidates judge (expiry=observer), and have the database check terms",
	}
}

// table looks whether the table is one that the store can rely on.
func table(ctx context.Context, db *storeurl.Database) Finding {
	if err := sqlkv.Migrate(ctx, db.DB, db.Dialect, &db.Options); err != nil {
		return Finding{
			Fail, "table", err.Error(), "records are kept there, and the store rests on its columns and indices",
			"mend it as it says, or name another table (table=…); what belongs there: " + strings.Join(db.Migration(), "; "),
		}
	}
	return Finding{Level: OK, Subject: "table", Found: db.Table() + " has the columns and indices that it should have"}
}

// pairs reads a query's rows of a name and a value.
func pairs(ctx context.Context, db *storeurl.Database, query string, args ...any) (_ map[string]string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		found[strings.ToLower(name)] = value
	}
	return found, rows.Err()
}

// A setting is one of a server's, and what is right for it.
type setting struct {
	name        string
	right       []string // values with which the promises hold
	why, advice string   // otherwise
}

// judge makes a finding of each setting that the server has.
func judge(settings []setting, found map[string]string) []Finding {
	var findings []Finding
	for _, s := range settings {
		value, ok := found[s.name]
		if !ok {
			continue
		}
		f := Finding{Level: OK, Subject: s.name, Found: value}
		if value == "" {
			f.Found = "(not set)"
		}
		if !slices.Contains(s.right, strings.ToLower(value)) {
			f.Level, f.Why, f.Advice = Warn, s.why, s.advice
		}
		findings = append(findings, f)
	}
	return findings
}
