package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
)

func Example() {
	dir, err := os.MkdirTemp("", "election-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "service.db")+"?_pragma=busy_timeout(1000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	runs := 0
	err = run(context.Background(), db, sqlkv.SQLite, time.Millisecond, func(context.Context) error {
		if runs++; runs > 2 {
			return errors.New("enough for an example")
		}
		fmt.Println("job done")
		return nil
	})
	fmt.Println(err)
	err = db.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM done").Scan(&runs)
	fmt.Println("noted:", runs, err)
	// Output:
	// job done
	// job done
	// enough for an example
	// noted: 2 <nil>
}

func TestTheJobIsNotedInTheServicesOwnPostgreSQL(t *testing.T) {
	addr := testenv.Postgres(t)
	db, err := sql.Open("pgx", testenv.PostgresURL(addr, testenv.NewPostgresDatabase(t, addr)))
	require.NoError(t, err)
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	job := func(context.Context) error { return nil }
	go func() { done <- run(ctx, db, sqlkv.PostgreSQL, time.Millisecond, job) }()
	require.Eventually(t, func() bool {
		var jobs int
		return db.QueryRowContext(ctx, "SELECT COUNT(*) FROM done").Scan(&jobs) == nil && jobs > 2
	}, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.Error(t, <-done)
}
