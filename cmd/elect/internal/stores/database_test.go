//go:build unix

package stores_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// reach asks the store of a URL about a safe: nil means that it can be used.
func reach(t *testing.T, url string, env map[string]string) error {
	t.Helper()
	address, err := stores.Parse(url, func(name string) string { return env[name] })
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = store.KV.Get(ctx, "name")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	if errors.Is(err, kv.ErrVacant) {
		return nil
	}
	return err
}

// readable lets the server, which may be another user, read files in folders that
// are the test's own.
func readable(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		for range 3 { // TempDir makes one folder in another
			require.NoError(t, os.Chmod(file, 0o755))
			file = filepath.Dir(file)
		}
	}
}

func TestMariaDBIsReachedByPasswordAndTLS(t *testing.T) {
	authority := testenv.NewAuthority(t)
	cert, key, ca := authority.Files("127.0.0.1")
	readable(t, cert, key, ca)
	server := testenv.StartMariaDB(t, "--ssl-cert="+cert, "--ssl-key="+key)
	name := testenv.NewMySQLDatabase(t, server.Addr())
	root := "mysql://" + testenv.MySQLUser + "@" + server.Addr() + "/" + name
	require.NoError(t, reach(t, root, nil))
	address, err := stores.Parse(root, nothing)
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	defer store.Close()
	for _, statement := range []string{
		"CREATE USER app IDENTIFIED BY 'hunter2' REQUIRE SSL", "GRANT ALL ON " + name + ".* TO app",
	} {
		_, err := store.Backend.(*stores.Database).ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}

	plain := strings.Replace(root, "root@", "app:hunter2@", 1)
	require.ErrorContains(t, reach(t, plain, nil), "Access denied", "it wants TLS")
	require.NoError(t, reach(t, plain+"?cacert="+ca, nil))
	require.ErrorContains(t, reach(t, plain+"?tls=true", nil), "certificate", "nobody has vouched for it")
	require.NoError(t, reach(t, plain+"?tls=true&insecure-skip-verify=true", nil))
	bare := strings.Replace(root, "root@", "app@", 1) + "?cacert=" + ca
	require.NoError(t, reach(t, bare, map[string]string{"MYSQL_PWD": "hunter2"}))
	require.ErrorContains(t, reach(t, bare, map[string]string{"MYSQL_PWD": "other"}), "Access denied")
}

func TestPostgreSQLIsReachedByPassword(t *testing.T) {
	hba := filepath.Join(t.TempDir(), "hba")
	rules := "host all postgres all trust\nhost all all all scram-sha-256\n"
	require.NoError(t, os.WriteFile(hba, []byte(rules), 0o600))
	readable(t, hba)
	server := testenv.StartPostgres(t, "-c", "hba_file="+hba)
	name := testenv.NewPostgresDatabase(t, server.Addr())
	address, err := stores.Parse(testenv.PostgresURL(server.Addr(), name), nothing)
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	defer store.Close()
	for _, statement := range []string{"CREATE USER app PASSWORD 'hunter2'", "CREATE SCHEMA locks AUTHORIZATION app"} {
		_, err := store.Backend.(*stores.Database).ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}

	url := "postgres://app:hunter2@" + server.Addr() + "/" + name + "?sslmode=disable"
	require.ErrorContains(t, reach(t, url, nil), `CREATE TABLE IF NOT EXISTS "election"`, "it may make none there")
	require.NoError(t, reach(t, url+"&schema=locks", nil))
	_, err = store.Backend.(*stores.Database).ExecContext(t.Context(), "REVOKE DELETE ON locks.election FROM app")
	require.NoError(t, err)
	require.NoError(t, open(t, url+"&schema=locks").Forget("name"), "an empty row is no harm")
	bare := strings.Replace(url, ":hunter2", "", 1) + "&schema=locks"
	require.Error(t, reach(t, bare, nil))
	t.Setenv("PGPASSWORD", "hunter2")
	require.NoError(t, reach(t, bare, nil))
	require.ErrorContains(t, reach(t, strings.Replace(url, "hunter2", "other", 1), nil), "password authentication failed")
}

func TestTheTableIsMadeOnceByWhomeverComesFirst(t *testing.T) {
	url := testenv.PostgresURL(testenv.Postgres(t), testenv.NewPostgresDatabase(t, testenv.Postgres(t)))
	failed := make(chan error)
	const candidates = 8
	for range candidates {
		store := open(t, url)
		go func() {
			_, err := store.KV.Get(t.Context(), "name")
			failed <- err
		}()
	}
	for range candidates {
		require.ErrorIs(t, <-failed, kv.ErrVacant)
	}
}
