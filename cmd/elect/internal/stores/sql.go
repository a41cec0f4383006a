package stores

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// defaultTable is the table where the URL names none.
const defaultTable = "election"

// A dialect is what differs between databases.
type dialect struct {
	sqlkv.Dialect
	mark    string              // around the names of tables
	place   string              // of a statement's first argument
	key     func(string) any    // what the table has for a name: text, or bytes
	refusal func(error) refusal // the reason that an error gives, or zero
	// examine looks at what the store rests on, besides the clock.
	examine func(ctx context.Context, db *Database, ttl time.Duration) ([]Finding, error)
}

func asText(name string) any { return name }

// A Database is where a store of SQL keeps its table.
type Database struct {
	base
	*sql.DB
	store    kv.Store // in the table
	dialect  dialect
	options  sqlkv.Options
	file     string // empty if a server keeps it
	observed bool

	where     *location
	addresses []string // host:port, of servers
}

// Close implements [Backend].
func (d *Database) Close() error { return d.DB.Close() }

// Observed implements [Backend].
func (d *Database) Observed() bool { return d.observed }

// Hint implements [Backend].
func (d *Database) Hint(ctx context.Context, silent bool) string {
	return d.where.reachable(ctx, d.addresses, silent)
}

// Absent implements [Backend].
func (d *Database) Absent() string {
	if d.file == "" {
		return ""
	}
	return absent(d.file)
}

// table returns the table's name as statements have it.
func (d *Database) table() string {
	table := d.quote(d.options.Table)
	if d.options.Schema != "" {
		table = d.quote(d.options.Schema) + "." + table
	}
	return table
}

func (d *Database) quote(name string) string {
	mark := d.dialect.mark
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// forget removes the row of a name that nobody holds. If the last record has expired, it is still
// in there. A user who may not do so leaves the row: it is vacant, and some 200 bytes.
func (d *Database) forget(ctx context.Context, name string) error {
	if _, err := d.store.Get(ctx, name); !errors.Is(err, kv.ErrVacant) {
		return err
	}
	_, err := d.ExecContext(ctx, "DELETE FROM "+d.table()+" WHERE name = "+d.dialect.place, d.dialect.key(name))
	if d.dialect.refusal(err) == denied {
		return nil
	}
	return err
}

// names reads the names of all rows, page by page. They are there as long as the table is.
func (d *Database) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		from, after := prefix, ">="
		for {
			names, err := d.namesFrom(ctx, after, from)
			if refused := d.dialect.refusal(err); refused == noTable || refused == noFile {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !strings.HasPrefix(name, prefix) || !yield(name, nil) {
					return
				}
			}
			if len(names) < page {
				return
			}
			from, after = names[len(names)-1], ">"
		}
	}
}

// namesFrom returns the next page of names, in the order of their bytes.
func (d *Database) namesFrom(ctx context.Context, after, from string) ([]string, error) {
	query := fmt.Sprintf("SELECT name FROM %s WHERE name %s %s ORDER BY name LIMIT %d", d.table(), after, d.dialect.place, page)
	rows, err := d.QueryContext(ctx, query, d.dialect.key(from))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := []string{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, errors.Join(rows.Err(), rows.Close())
}

// inDatabase returns what opens a store in the database that the connector connects
// to: one in a file, or at the addresses.
func (l *location) inDatabase(in dialect, options sqlkv.Options, connector driver.Connector, file string, addresses ...string) (opener, error) {
	observed, err := l.observed()
	if err != nil {
		return nil, err
	}
	if options.Table == "" {
		options.Table = defaultTable
	}
	for param, name := range map[string]string{"table": options.Table, "schema": options.Schema} {
		if len(name) > 63 || strings.ContainsAny(name, "\x00:{}?$") {
			return nil, fmt.Errorf("parameter %q is longer than 63 bytes or has one of the characters : { } ? $", param)
		}
	}
	return func(_ context.Context, how purpose) (*Store, error) {
		db := &Database{DB: sql.OpenDB(connector), dialect: in, options: options, file: file, observed: observed, where: l, addresses: addresses}
		db.store = sqlkv.New(db.DB, in.Dialect, &options)
		if observed {
			db.store = sqlkv.NewObserved(db.DB, in.Dialect, &options)
		}
		if how.reading {
			return &Store{KV: &reading{db.store, db}, Backend: db}, nil
		}
		return &Store{KV: newMigrating(db.store, db), Backend: db}, nil
	}, nil
}

// migrate makes the table if it is missing.
func (d *Database) migrate(ctx context.Context) error {
	err := d.PingContext(ctx)                         // says more plainly what is wrong than a statement would
	if err == nil || d.dialect.refusal(err) == busy { // Migrate waits for the lock
		err = sqlkv.Migrate(ctx, d.DB, d.dialect.Dialect, &d.options)
	}
	if advice := d.advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// migration returns the statements that make the table.
func (d *Database) migration() []string { return sqlkv.Migration(d.dialect.Dialect, &d.options) }

// Unknown is a record of the other judge of expiry, mostly.
func (d *Database) Unknown(foreign bool) Finding {
	if !foreign {
		return d.base.Unknown(foreign)
	}
	return Finding{
		Level: Fail, Found: "the row has a record that candidates of this URL leave alone",
		Why: "as long as it is there nobody can be elected", Advice: "give all candidates of an election the same expiry=…; else see what wrote the row",
	}
}
