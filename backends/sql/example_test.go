package sqlkv_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/electkv/election"
	sqlkv "github.com/electkv/election/backends/sql"
)

// A leader writes to a table of the same database, and is refused once its term is
// over, whatever it believes itself. The program imports the driver, modernc.org/sqlite
// for this one.
func Example() {
	if err := lead(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func lead(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "election")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := sqlkv.Migrate(ctx, db, sqlkv.SQLite, nil); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE report (author TEXT)"); err != nil {
		return err
	}
	store := sqlkv.New(db, sqlkv.SQLite, nil)
	candidate, err := election.New(store, "reports", nil)
	if err != nil {
		return err
	}
	done := errors.New("done")
	err = candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		name, rec := term.NamedRecord()
		if err := store.Guard(ctx, tx, name, rec); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO report VALUES ('the leader')"); err != nil {
			return err
		}
		return errors.Join(tx.Commit(), done)
	})
	if !errors.Is(err, done) {
		return err
	}
	var author string
	if err := db.QueryRowContext(ctx, "SELECT author FROM report").Scan(&author); err != nil {
		return err
	}
	fmt.Printf("the report was written by %s, and by nobody else\n", author)
	return nil
}
