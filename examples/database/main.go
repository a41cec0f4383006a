// Example database does a job on one process out of many, which are elected in the
// database that the service has already, and writes what the job did only while it
// leads. Start it a few times, and kill the one that works:
//
//	go run ./examples/database
//	DATABASE_URL=postgres://postgres@localhost/postgres go run ./examples/database
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/electkv/election"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	driver, source, dialect := "sqlite", filepath.Join(os.TempDir(), "election-examples.db"), sqlkv.SQLite
	source = "file:" + source + "?_pragma=busy_timeout(1000)" // for others that write
	if url := os.Getenv("DATABASE_URL"); url != "" {
		driver, source, dialect = "pgx", url, sqlkv.PostgreSQL
	}
	db, err := sql.Open(driver, source) // the service's own
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	job := func(context.Context) error { fmt.Println("job done"); return nil }
	if err := run(ctx, db, dialect, 2*time.Second, job); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run makes the tables that are missing, and does the job while this process leads.
func run(ctx context.Context, db *sql.DB, dialect sqlkv.Dialect, every time.Duration, job func(context.Context) error) error {
	if err := sqlkv.Migrate(ctx, db, dialect, nil); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS done (at TIMESTAMP)"); err != nil {
		return err
	}
	store := sqlkv.New(db, dialect, &sqlkv.Options{Driver: pgxdriver.Driver{}}) // for PostgreSQL to tell of changes
	candidate, err := election.New(store, "nightly", nil)
	if err != nil {
		return err
	}
	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := job(ctx); err != nil {
				return err // another process has its try
			}
			// That it is done is written if this term goes on, or not at all.
			name, rec := term.NamedRecord()
			where, args := store.Condition(name, rec, 0)
			if _, err := db.ExecContext(ctx, "INSERT INTO done SELECT CURRENT_TIMESTAMP WHERE "+where, args...); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
		return nil
	})
}
