package storeurl

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	etcdkv "github.com/electkv/election/backends/etcd"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/kv"
)

// defaultTable is the table where the URL names none.
const defaultTable = "election"

// A Database is where a store of SQL keeps its table.
type Database struct {
	*sql.DB
	Dialect sqlkv.Dialect
	Options sqlkv.Options
	File    string // of SQLite
}

// Table returns the table's name as statements have it.
func (d *Database) Table() string {
	table := d.quote(d.Options.Table)
	if d.Options.Schema != "" {
		table = d.quote(d.Options.Schema) + "." + table
	}
	return table
}

func (d *Database) quote(name string) string {
	mark := `"`
	if d.Dialect == sqlkv.MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// forget removes the row of a name that nobody holds. A user who may not do so
// leaves it there: it is vacant, and some 200 bytes.
func (d *Database) forget(ctx context.Context, name string) error {
	place := "?"
	if d.Dialect == sqlkv.PostgreSQL {
		place = "$1"
	}
	// A table of bytes takes no text, and one of text no bytes.
	var key any = name
	if d.Dialect == sqlkv.MySQL {
		key = []byte(name)
	}
	_, err := d.ExecContext(ctx, "DELETE FROM "+d.Table()+" WHERE name = "+place+" AND LENGTH(signature) = 0", key)
	if refusalOf(err) == denied {
		return nil
	}
	return err
}

// inDatabase returns what opens a store in the database that the connector
// connects to, at the addresses, if it is a server's.
func (l *location) inDatabase(dialect sqlkv.Dialect, options sqlkv.Options, connector driver.Connector, addresses ...string) (opener, error) {
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
	if dialect == sqlkv.PostgreSQL {
		options.Driver = pgxdriver.Driver{}
	}
	return func(_ context.Context, how purpose) (*Store, error) {
		db := &Database{DB: sql.OpenDB(connector), Dialect: dialect, Options: options}
		var store kv.Store = sqlkv.New(db.DB, dialect, &options)
		if observed {
			store = sqlkv.NewObserved(db.DB, dialect, &options)
		}
		if how.reading {
			store = &reading{store, db}
		} else {
			store = newMigrating(store, db)
		}
		return &Store{
			KV: store, SQL: db, Observed: observed, closer: db.DB, addresses: addresses,
			with: func(bool, etcdkv.Layout) kv.Store { return store },
		}, nil
	}, nil
}

// migrate makes the table if it is missing.
func (d *Database) migrate(ctx context.Context) error {
	err := d.PingContext(ctx) // says more plainly what is wrong than a statement would
	if err == nil {
		err = sqlkv.Migrate(ctx, d.DB, d.Dialect, &d.Options)
	}
	if advice := d.advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// Migration returns the statements that make the table.
func (d *Database) Migration() []string { return sqlkv.Migration(d.Dialect, &d.Options) }
