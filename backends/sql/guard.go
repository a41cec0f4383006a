package sqlkv

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/electkv/election/kv"
)

// Guard lets the transaction go on only if the safe holds rec, the record of a term
// (election.Term.NamedRecord), in whatever state: a value that was published since
// changes nothing. It holds the safe's row against others until the transaction ends, so
// that nobody takes the safe over between this check and the commit.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	name, rec := term.NamedRecord()
//	if err := store.Guard(ctx, tx, name, rec); err != nil { … }
//	… // what the leader alone may write
//	err = tx.Commit()
//
// It returns [kv.ErrStale] if the safe does not hold rec; roll the transaction
// back then. A takeover waits for the transaction, and in MySQL and SQLite the
// leader's own refresh does, too: keep it well under a third of the TTL. In
// PostgreSQL a refresh passes by.
//
// The transaction must be on the safe's own database. Errors that the database
// gives for conflicts between transactions are returned as they are; begin anew.
// At the isolation levels REPEATABLE READ and SERIALIZABLE, call it first.
func (t *table) Guard(ctx context.Context, tx *sql.Tx, name string, rec kv.Record) error {
	_, err := t.outcome(ctx, "guard", name, kv.Record{}, t.guard(ctx, tx, name, rec))
	return err
}

func (t *table) guard(ctx context.Context, tx *sql.Tx, name string, rec kv.Record) error {
	if err := t.checkName(name); err != nil {
		return err
	}
	if err := checkOwn(rec); err != nil {
		return err
	}
	v := ownedBy(rec)
	v["name"] = t.name(name)
	args, err := t.args(ctx, t.book.guard, v)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, t.book.guard.text, args...)
	if err != nil {
		return err
	}
	var one int
	found, err := only(rows, &one)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: the safe holds another record, or none", kv.ErrStale)
	}
	return nil
}

// Condition returns the condition that the safe holds rec, for the WHERE of a statement
// of one's own: what the statement does is done by the leader or not at all, however long
// it was on its way. after is the number of the statement's arguments that come before
// the condition's.
//
//	name, rec := term.NamedRecord()
//	where, args := store.Condition(name, rec, 2)
//	db.ExecContext(ctx, "UPDATE report SET done = $1 WHERE id = $2 AND "+where,
//		append([]any{now, id}, args...)...)
//
// The statement holds the safe's row against others until it is committed, as
// [Store.Guard] does. For a name that the store does not take, or a record that
// nobody owns, the condition never holds. For SQLite it has the time in it: use it
// at once.
func (t *table) Condition(name string, rec kv.Record, after int) (where string, args []any) {
	if t.checkName(name) != nil || checkOwn(rec) != nil {
		return "1 = 0", nil
	}
	v := ownedBy(rec)
	v["name"] = t.name(name)
	all, err := t.ambient(context.Background(), v)
	if err != nil { // nobody can tell what holds
		return "1 = 0", nil
	}
	st := t.book.say(condition, after)
	return st.text, st.args(all)
}
