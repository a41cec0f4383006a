package sqlkv_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// holdVariable has this test binary, started anew, hold a transaction of the database
// that it names, in the middle of a write, until it is killed.
const holdVariable = "ELECTION_TEST_SQLITE_HOLD"

func TestMain(m *testing.M) {
	if source := os.Getenv(holdVariable); source != "" {
		if err := holdOn(source); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if role := os.Getenv(frameVariable); role != "" {
		if err := playInFrame(role); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	testenv.Parallel(8)
	os.Exit(m.Run())
}

func holdOn(source string) error {
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"PRAGMA cache_spill = ON", "PRAGMA cache_size = 1", // so that the file is written to
		"BEGIN IMMEDIATE",
		"UPDATE election SET signature = X'', token = 0, revision = 0",
		"INSERT INTO election (name, value) SELECT 'n' || value, randomblob(4000) FROM (WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c WHERE value < 200) SELECT value FROM c)",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	fmt.Println("holding")
	time.Sleep(time.Hour)
	return nil
}
