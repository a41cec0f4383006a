//go:build unix

package stores_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// made is the beginning of the advice for who may not make the table.
const made = "CREATE TABLE IF NOT EXISTS"

// refused requires that the store of a URL cannot be used, with advice that has the
// text, and reports whether it has the statement that makes the table.
func refused(t *testing.T, url, advice string) (statement bool) {
	t.Helper()
	err := reach(t, url, nil)
	require.Error(t, err)
	require.ErrorContains(t, err, advice)
	return strings.Contains(err.Error(), made)
}

// administrator returns what carries out statements by a driver of the test's own.
func administrator(t *testing.T, driver, source string) func(statement string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return func(statement string) {
		t.Helper()
		_, err := db.ExecContext(context.Background(), statement)
		require.NoError(t, err, statement)
	}
}

func ofPostgres(t *testing.T, addr, name string) func(string) {
	t.Helper()
	return administrator(t, "pgx", testenv.PostgresURL(addr, name))
}

func ofMariaDB(t *testing.T, addr, name string) func(string) {
	t.Helper()
	return administrator(t, "mysql", testenv.MySQLDSN(addr, name))
}

// TestWhoMayNotMakeTheTableIsToldWhatToAskFor has the statement of the advice carried
// out by another, and what it says granted.
func TestWhoMayNotMakeTheTableIsToldWhatToAskFor(t *testing.T) {
	carriedOut := func(t *testing.T, url, user string, do func(string)) {
		t.Helper()
		err := reach(t, url, nil)
		require.ErrorContains(t, err, made)
		_, advice, _ := strings.Cut(err.Error(), "let another carry out: ")
		statement, grant, found := strings.Cut(advice, ", and GRANT ")
		require.True(t, found, advice)
		do(statement)
		require.Error(t, reach(t, url, nil), "it was granted nothing yet")
		do("GRANT " + strings.TrimSuffix(grant, "it") + user)
		require.NoError(t, reach(t, url, nil))
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		addr := testenv.Postgres(t)
		name := testenv.NewPostgresDatabase(t, addr)
		do, user := ofPostgres(t, addr, name), "clerk_"+name
		do("CREATE ROLE " + user + " LOGIN")
		t.Cleanup(func() { do("DROP OWNED BY " + user); do("DROP ROLE " + user) })
		carriedOut(t, strings.Replace(testenv.PostgresURL(addr, name), testenv.PostgresUser+"@", user+"@", 1), user, do)
	})
	t.Run("MariaDB", func(t *testing.T) {
		addr := testenv.MariaDB(t)
		name := testenv.NewMySQLDatabase(t, addr)
		do, user := ofMariaDB(t, addr, name), "clerk_"+name
		do("CREATE USER " + user)
		t.Cleanup(func() { do("DROP USER " + user) })
		url := "mysql://" + user + "@" + addr + "/" + name
		require.True(t, refused(t, url, "Access denied"), "it may do nothing with this database")
		do("CREATE TABLE other (n INT)")
		do("GRANT SELECT ON other TO " + user)
		carriedOut(t, url, user, do)
	})
	t.Run("SQLite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "database")
		do := administrator(t, "sqlite", "file:"+file)
		do("CREATE TABLE other (n INT)")
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{9}, 18) // a format that this SQLite cannot write, not even for root
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.False(t, refused(t, "sqlite://"+file, "this user may not write to the file"))
	})
}

// TestAReadOnlyServerIsToldFromAMissingTable has servers where nobody can make one.
func TestAReadOnlyServerIsToldFromAMissingTable(t *testing.T) {
	t.Run("standby", func(t *testing.T) {
		primary := testenv.StartPostgres(t)
		name := testenv.NewPostgresDatabase(t, primary.Addr())
		standby := testenv.StartPostgresStandby(t, primary)
		url := testenv.PostgresURL(standby.Addr(), name)
		require.False(t, refused(t, url, "want the primary"), "without a table")
		require.NoError(t, reach(t, testenv.PostgresURL(primary.Addr(), name), nil))
		require.Eventually(t, func() bool {
			err := reach(t, url, nil)
			return err != nil && !strings.Contains(err.Error(), made) && strings.Contains(err.Error(), "want the primary")
		}, time.Minute, 20*time.Millisecond, "with one")
	})
	t.Run("session", func(t *testing.T) {
		addr := testenv.Postgres(t)
		name := testenv.NewPostgresDatabase(t, addr)
		ofPostgres(t, addr, name)("ALTER DATABASE " + name + " SET default_transaction_read_only = on")
		require.False(t, refused(t, testenv.PostgresURL(addr, name), "read only: want the primary"))
	})
	t.Run("MariaDB", func(t *testing.T) {
		server := testenv.StartMariaDB(t, "--read-only")
		name := testenv.NewMySQLDatabase(t, server.Addr())
		do := ofMariaDB(t, server.Addr(), name)
		require.False(t, refused(t, "mysql://"+testenv.MySQLUser+"@"+server.Addr()+"/"+name, "want the primary"))
		do("SET GLOBAL read_only = OFF")
		do("CREATE USER clerk")
		do("GRANT ALL ON " + name + ".* TO clerk")
		do("SET GLOBAL read_only = ON")
		require.False(t, refused(t, "mysql://clerk@"+server.Addr()+"/"+name, "want the primary"))
		do("CREATE TABLE election (n INT)") // by root, who may, and nobody else has
	})
}

// TestAPlaceThatIsMissingIsToldFromAMissingTable has no database, no schema, or no
// folder to make one in.
func TestAPlaceThatIsMissingIsToldFromAMissingTable(t *testing.T) {
	addr := testenv.Postgres(t)
	name := testenv.NewPostgresDatabase(t, addr)
	url := testenv.PostgresURL(addr, name)
	require.False(t, refused(t, url+"&schema=locks", `CREATE SCHEMA "locks"`))
	do := ofPostgres(t, addr, name)
	do(`CREATE SCHEMA "locks"`)
	require.NoError(t, reach(t, url+"&schema=locks", nil))
	do("ALTER DATABASE " + name + " SET search_path = nowhere")
	require.False(t, refused(t, url, "schema=…"))
	require.NoError(t, reach(t, url+"&schema=locks", nil))

	require.False(t, refused(t, testenv.PostgresURL(addr, "nowhere"), "CREATE DATABASE"))
	require.False(t, refused(t, "mysql://"+testenv.MySQLUser+"@"+testenv.MariaDB(t)+"/nowhere", "CREATE DATABASE"))
	require.False(t, refused(t, "sqlite://"+t.TempDir()+"/nowhere/database", "folder"))
}

// TestATableOfAnotherProgramIsToldFromAMissingOne has one with other columns.
func TestATableOfAnotherProgramIsToldFromAMissingOne(t *testing.T) {
	const votes = "CREATE TABLE election (name VARCHAR(10), votes INTEGER)"
	addr := testenv.Postgres(t)
	name := testenv.NewPostgresDatabase(t, addr)
	ofPostgres(t, addr, name)(votes)
	require.False(t, refused(t, testenv.PostgresURL(addr, name), "table=…"))
	require.NoError(t, reach(t, testenv.PostgresURL(addr, name)+"&table=terms", nil))

	addr = testenv.MariaDB(t)
	name = testenv.NewMySQLDatabase(t, addr)
	ofMariaDB(t, addr, name)(votes)
	require.False(t, refused(t, "mysql://"+testenv.MySQLUser+"@"+addr+"/"+name, "table=…"))

	file := filepath.Join(t.TempDir(), "database")
	administrator(t, "sqlite", "file:"+file)(votes)
	require.False(t, refused(t, "sqlite://"+file, "table=…"))
}

// TestAServerThatIsNotThereIsToldFromAMissingTable has nobody listen.
func TestAServerThatIsNotThereIsToldFromAMissingTable(t *testing.T) {
	for _, scheme := range []string{"postgres", "mysql"} {
		url := scheme + "://somebody@" + testenv.FreeAddr(t) + "/name"
		require.False(t, refused(t, url, "refused"), scheme)
	}
}

// TestADatabaseThatAnotherProcessLocksIsWaitedFor has a lock that is held for longer than a
// connection itself waits, when the store is first used.
func TestADatabaseThatAnotherProcessLocksIsWaitedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "database")
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE other (n INT)") // takes the lock, and keeps it
	require.NoError(t, err)
	released := make(chan error, 1)
	time.AfterFunc(time.Second, func() {
		_, err := db.ExecContext(context.Background(), "PRAGMA locking_mode = NORMAL; SELECT n FROM other")
		released <- err
	})
	require.NoError(t, reach(t, "sqlite://"+file, nil))
	require.NoError(t, <-released)
}
