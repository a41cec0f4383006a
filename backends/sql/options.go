package sqlkv

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

// Options say where and how a store keeps safes. The zero value is a good choice.
type Options struct {
	// Schema is where the table is: a schema of PostgreSQL, a database of MySQL,
	// an attached database of SQLite. Default: where the connection looks for
	// tables.
	Schema string

	// Table is the table's name. All candidates of an election use the same table.
	// Default: "election".
	Table string

	// Driver lets a store in PostgreSQL hear of changes at once: pgxdriver.Driver{} for
	// pgx. Without it, watches poll as often as in other databases, and statements
	// are prepared as the pool's settings say. Then set default_query_exec_mode=exec in
	// the data source if there is a pooler such as PgBouncer. Default: none.
	Driver Driver

	// Poll is the longest time between two reads, by a watch, of a safe that does not
	// seem to change; where PostgreSQL tells of changes, it is ten times as long. It
	// bounds how late a watch sees a change that nothing told it of. Default: 1 s.
	Poll time.Duration
}

const (
	defaultTable = "election"
	defaultPoll  = time.Second

	// longestIdentifier is what PostgreSQL and MySQL take; the former would cut
	// off the rest.
	longestIdentifier = 63
)

// name returns the table's name alone.
func (o *Options) name() string {
	if o == nil || o.Table == "" {
		return defaultTable
	}
	return o.Table
}

// table returns the table's name, for people.
func (o *Options) table() string {
	if o == nil || o.Schema == "" {
		return o.name()
	}
	return o.Schema + "." + o.name()
}

// identifier returns the table's name, for the database.
func (o *Options) identifier(d Dialect) string {
	if o == nil || o.Schema == "" {
		return d.quote(o.name())
	}
	return d.quote(o.Schema) + "." + d.quote(o.name())
}

// where returns the table's name as arguments of a question about it.
func (o *Options) where(d Dialect) values {
	v := values{"identifier": o.identifier(d), "title": o.name(), "schema": nil}
	if o != nil && o.Schema != "" {
		v["schema"] = o.Schema
	}
	return v
}

// check returns why a table cannot be used.
func (o *Options) check(db *sql.DB, d Dialect) error {
	switch d {
	case PostgreSQL, MySQL, SQLite:
	default:
		return fmt.Errorf("sqlkv: %v: want PostgreSQL, MySQL or SQLite: %w", d, kv.ErrInvalid)
	}
	if db == nil {
		return fmt.Errorf("sqlkv: the database is nil: %w", kv.ErrInvalid)
	}
	if o == nil {
		return nil
	}
	for what, name := range map[string]string{"schema": o.Schema, "table": o.Table} {
		// Colons and braces mean something in this package's own statements.
		if len(name) > longestIdentifier || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00:{}?$") {
			return fmt.Errorf("sqlkv: %s %.80q: want up to %d bytes of UTF-8, without NUL and the characters : { } ? $: %w", what, name, longestIdentifier, kv.ErrInvalid)
		}
	}
	return nil
}
