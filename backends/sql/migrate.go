package sqlkv

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/electkv/election/internal/ctxend"
)

// migrating is the key of the advisory lock of those who make a table.
const migrating = 0x656c656374696f6e // "election"

// Migration returns the statements that make the table that New's store needs, to be
// carried out by hand, in order. They do nothing if the table is there already. The opts
// are those of New, and may be nil. The statements do not make the schema.
func Migration(dialect Dialect, opts *Options) []string {
	book := newPhrasebook(dialect, byStore, opts.identifier(dialect))
	return []string{book.say(dialect.schema(), 0).text}
}

// Migrate makes the table that New's store needs, unless it is there. Any number of
// processes may call it at once. Where the table is there, the process needs no
// permission to make tables.
//
// Migrate examines a table that is there. It refuses one that the statements cannot rely
// on, with an error that has the statement that mends it: a table without a unique index
// of the name alone (two could own one safe); one in which a guard would lock nothing (in
// PostgreSQL one without a unique index of name and token, in MySQL one of an engine
// without transactions); or one with columns that do not hold what is put there. Nothing
// else looks for that, so call Migrate however the table was made.
func Migrate(ctx context.Context, db *sql.DB, dialect Dialect, opts *Options) error {
	t := newTable(db, dialect, opts, byStore)
	if t.unfit != nil {
		return t.unfit
	}
	err := t.there(ctx)
	if err != nil && dialect.missing(err) {
		if err = t.fits(ctx); err == nil {
			err = t.patiently(ctx, func() error { return t.make(ctx, Migration(dialect, opts)) })
		}
		if err == nil {
			err = t.there(ctx)
		}
	}
	if err == nil {
		err = t.suits(ctx)
	}
	if err != nil {
		return fmt.Errorf("sqlkv: make the table %s: %w", t.label, ctxend.Wrap(ctx, err))
	}
	return nil
}

// there looks whether the table is, with all of its columns.
func (t *table) there(ctx context.Context) error {
	_, err := t.look(ctx, "")
	return err
}

// fits asks whether the server is one to write to. MySQL lets some users write to one
// that is read only.
func (t *table) fits(ctx context.Context) error {
	var f fitness
	if _, err := t.query(ctx, t.book.say("SELECT {unfit}", 0), nil, &f); err != nil {
		return err
	}
	return f.err()
}

// make carries out the statements, in one transaction where that means anything.
// CREATE TABLE IF NOT EXISTS fails in PostgreSQL if two do it at once, so they
// take turns.
func (t *table) make(ctx context.Context, statements []string) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	if t.book.dialect == PostgreSQL {
		turn := append(append([]any(nil), t.options...), int64(migrating))
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", turn...); err != nil {
			return err
		}
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}
