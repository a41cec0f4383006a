package main

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A meter is a store of the test's own, and what its server counts of writes.
type meter struct {
	url     string
	written func(t *testing.T) string // changes with each write
}

// digest returns what a folder holds, and since when.
func digest(t *testing.T, dir string) string {
	t.Helper()
	text := ""
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		text += fmt.Sprintf("%s %x\n", path, sha256.Sum256(content))
		return err
	}))
	return text
}

func etcdMeter(t *testing.T) meter {
	addr := testenv.StartEtcd(t).Addr()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return meter{"etcd://" + addr + "/elections", func(t *testing.T) string {
		got, err := client.Get(t.Context(), "none")
		require.NoError(t, err)
		leases, err := client.Leases(t.Context())
		require.NoError(t, err)
		return fmt.Sprint(got.Header.Revision, len(leases.Leases))
	}}
}

func consulMeter(t *testing.T, query string) meter {
	addr := testenv.StartConsul(t).Addr()
	client, err := api.NewClient(&api.Config{Address: addr})
	require.NoError(t, err)
	return meter{"consul://" + addr + "/elections" + query, func(t *testing.T) string {
		_, keys, err := client.KV().List("elections", nil)
		require.NoError(t, err)
		_, sessions, err := client.Session().List(nil)
		require.NoError(t, err)
		return fmt.Sprint(keys.LastIndex, sessions.LastIndex)
	}}
}

func redisMeter(t *testing.T) meter {
	addr := testenv.StartRedis(t).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return meter{"redis://" + addr, func(t *testing.T) string {
		info, err := client.Info(t.Context(), "persistence").Result()
		require.NoError(t, err)
		return regexp.MustCompile(`rdb_changes_since_last_save:\d+`).FindString(info)
	}}
}

// databaseMeter has the database count.
func databaseMeter(url, count string) func(t *testing.T) meter {
	return func(t *testing.T) meter {
		address, err := stores.Parse(url, os.Getenv)
		require.NoError(t, err)
		store, err := address.Open()
		require.NoError(t, err)
		t.Cleanup(func() { store.Close() })
		return meter{url, func(t *testing.T) string {
			rows, err := store.Backend.(*stores.Database).QueryContext(t.Context(), count)
			require.NoError(t, err)
			defer rows.Close()
			text := ""
			for rows.Next() {
				columns, err := rows.Columns()
				require.NoError(t, err)
				values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
				for i := range values {
					into[i] = &values[i]
				}
				require.NoError(t, rows.Scan(into...))
				text += fmt.Sprintln(values)
			}
			require.NoError(t, rows.Err())
			return text
		}}
	}
}

// meters are stores of all kinds that are written to by others alone.
func meters(t *testing.T) map[string]func(t *testing.T) meter {
	postgres, mariadb := testenv.StartPostgres(t).Addr(), testenv.StartMariaDB(t).Addr()
	return map[string]func(t *testing.T) meter{
		"etcd": etcdMeter, "redis": redisMeter,
		"consul":          func(t *testing.T) meter { return consulMeter(t, "") },
		"consul/observer": func(t *testing.T) meter { return consulMeter(t, "?expiry=observer") },
		"file": func(t *testing.T) meter {
			dir := filepath.Join(t.TempDir(), "elect")
			return meter{"file://" + dir, func(t *testing.T) string { return digest(t, dir) }}
		},
		"sqlite": func(t *testing.T) meter {
			dir := t.TempDir()
			return meter{"sqlite://" + dir + "/elect.db", func(t *testing.T) string { return digest(t, dir) }}
		},
		// The transaction that wrote a row last, and where the row is; and all tables.
		"postgres": databaseMeter(testenv.PostgresURL(postgres, testenv.NewPostgresDatabase(t, postgres)),
			"SELECT name, CAST(xmin AS text), CAST(ctid AS text) FROM election UNION ALL SELECT CAST(relname AS text), '', '' FROM pg_class ORDER BY 1"),
		// All statements of all clients that write.
		"mysql": databaseMeter("mysql://"+testenv.MySQLUser+"@"+mariadb+"/"+testenv.NewMySQLDatabase(t, mariadb),
			"SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert', 'Com_update', 'Com_update_multi', 'Com_replace', 'Com_delete', 'Com_create_table', 'Com_alter_table')"),
	}
}

func TestServeAndTopWriteNothingToTheStore(t *testing.T) {
	for kind, measured := range meters(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it waits
			m := measured(t)
			address, err := stores.Parse(m.url, os.Getenv)
			require.NoError(t, err)
			writer, err := address.Open()
			require.NoError(t, err)
			defer writer.Close()
			put := func(name string) {
				t.Helper()
				_, err := writer.KV.Create(t.Context(), name, kv.Record{Signature: "anna/N.1", TTL: time.Hour})
				require.NoError(t, err)
			}
			put("job")
			put("job:heir")
			put("other:heir")
			_, rosters := writer.KV.(kv.Roster)
			if rosters {
				put("job:roster:x") // a foreign one
			}
			settle(t, m)

			before := m.written(t)
			p, url := serve(t, "--store", m.url)
			eventually(t, "both are shown", func() bool {
				all := elections(t, url)
				return len(all) == 2 && all[0].now() == "leader anna" && all[1].now() == "vacant " && (all[0].CandidateCount > 0) == rosters
			})
			e, s := (&place{t: t, store: m.url}).top(120, 10)
			s.shows(t, "2 elections", "anna")
			time.Sleep(7 * time.Second) // until they have looked for elections once more, and for candidates twice
			for _, shown := range []*proc{p, e} {
				shown.send(t, syscall.SIGTERM)
				require.Zero(t, shown.status(t))
			}
			require.Equal(t, before, m.written(t))

			put("new")
			require.NotEqual(t, before, m.written(t), "the meter moves")
		})
	}
}

// settle waits until the store has done what comes after a write: statistics, a checkpoint.
func settle(t *testing.T, m meter) {
	t.Helper()
	last := ""
	eventually(t, "nothing is written any more", func() bool {
		time.Sleep(time.Second)
		now := strings.TrimSpace(m.written(t))
		defer func() { last = now }()
		return now == last
	})
}
