package stores

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sqlkv "github.com/electkv/election/backends/sql"
)

// Examine looks at what a store of SQL rests on. The table is there: it was used just
// before.
func (d *Database) Examine(ctx context.Context, ttl time.Duration) []Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, CallTime, fmt.Errorf("no answer within %v", CallTime))
	defer cancel()
	findings, err := d.dialect.examine(ctx, d, ttl)
	if err != nil {
		findings = append(findings, Finding{Level: Warn, Subject: "settings", Found: "unknown: " + err.Error(), Advice: "let this user read them to learn more"})
	}
	return append([]Finding{d.clock()}, findings...)
}

// clock says whose clock ends a record.
func (d *Database) clock() Finding {
	if d.file != "" && !d.observed {
		return sqliteClock()
	}
	return wallClock(d.observed, "the database check terms")
}

// examineTable looks whether the table is one that the store can rely on.
func (d *Database) examineTable(ctx context.Context) Finding {
	if err := sqlkv.Migrate(ctx, d.DB, d.dialect.Dialect, &d.options); err != nil {
		return Finding{
			Fail, "table", err.Error(), "records are kept there, and the store rests on its columns and indices",
			"mend it as it says, or name another table (table=…); what belongs there: " + strings.Join(d.migration(), "; "),
		}
	}
	return Finding{Level: OK, Subject: "table", Found: d.table() + " has the columns and indices that it should have"}
}

// pairs reads a query's rows of a name and a value.
func (d *Database) pairs(ctx context.Context, query string, args ...any) (_ map[string]string, err error) {
	rows, err := d.QueryContext(ctx, query, args...)
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
