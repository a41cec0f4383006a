//go:build unix

package main

import (
	"crypto/rand"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/cmd/elect/internal/order"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
)

// servers are the URLs of real servers. The Consul of testenv grants TTLs from
// one second on.
func servers(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"etcd":   "etcd://" + testenv.Etcd(t) + "/elect-test",
		"consul": "consul://" + testenv.Consul(t) + "/elect-test?min-ttl=1s",
		"redis":  "redis://" + testenv.Redis(t) + "/0?prefix=elect-test:",
	}
}

// databases are the URLs of databases of the test's own, on real servers and on
// disk. Each makes its table when it is first needed.
func databases(t *testing.T) map[string]string {
	t.Helper()
	postgres, mariadb := testenv.Postgres(t), testenv.MariaDB(t)
	return map[string]string{
		"sqlite":            "sqlite://" + t.TempDir() + "/elect.db",
		"postgres":          testenv.PostgresURL(postgres, testenv.NewPostgresDatabase(t, postgres)),
		"postgres/observer": testenv.PostgresURL(postgres, testenv.NewPostgresDatabase(t, postgres)) + "&expiry=observer",
		"mysql":             "mysql://" + testenv.MySQLUser + "@" + mariadb + "/" + testenv.NewMySQLDatabase(t, mariadb),
	}
}

func TestTheDemoKeepsItsPromisesOnDatabases(t *testing.T) {
	for name, url := range databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			requireVerdict(t, t.TempDir(), nil, "--store", url)
			if name == "postgres" {
				requireVerdict(t, t.TempDir(), nil, "rank", "--store", url)
			}
			address, err := stores.Parse(url, os.Getenv)
			require.NoError(t, err)
			store, err := address.Open()
			require.NoError(t, err)
			defer store.Close()
			var rows int
			require.NoError(t, store.Backend.(*stores.Database).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM election").Scan(&rows))
			require.Zero(t, rows, "the demo leaves nothing")
		})
	}
}

func TestTheDemoKeepsItsPromisesOnRealServers(t *testing.T) {
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			requireVerdict(t, t.TempDir(), nil, "--store", url)
		})
	}
}

func TestTheDemoOfEachOrderKeepsItsPromisesOnRealServersAndLeavesNothing(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			prefix := "elect-demos-" + strings.ToLower(rand.Text())
			requireOrders(t, strings.Replace(url, "elect-test", prefix, 1), t.TempDir(), order.Names()[1:])
			requireNoKeys(t, prefix)
		})
	}
}

// requireNoKeys wants no server to have a key with that in it.
func requireNoKeys(t *testing.T, part string) {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}})
	require.NoError(t, err)
	defer etcd.Close()
	got, err := etcd.Get(t.Context(), part, clientv3.WithPrefix())
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
	config := api.DefaultConfig()
	config.Address = testenv.Consul(t)
	consul, err := api.NewClient(config)
	require.NoError(t, err)
	keys, _, err := consul.KV().Keys(part, "", nil)
	require.NoError(t, err)
	require.Empty(t, keys)
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t)})
	defer client.Close()
	left, err := client.Keys(t.Context(), "*"+part+"*").Result()
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRunWatchStatusAndDoctorWorkOnRealServers(t *testing.T) {
	t.Parallel()
	urls := servers(t)
	maps.Copy(urls, databases(t))
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.store = url
			w := start(t, "watch", "--store", url, "-o", "json", "job")
			e := p.run(`echo "$ELECTION_TOKEN" >"$1/token"; `+stay, "--id", "me", "--ttl", "1m", "--grace", "500ms")
			token := p.note("token")
			p.pid("child")

			status, stdout, _ := finish(t, "status", "--store", url, "job")
			require.Zero(t, status)
			require.Contains(t, stdout, "me")
			require.Contains(t, stdout, token)
			// What comes and goes between two looks may go unreported.
			leads := `"token":` + token + `,"state":"leader"`
			eventually(t, "the leader is seen", func() bool { return strings.Contains(w.out.String(), leads) })

			e.send(t, syscall.SIGTERM)
			require.Equal(t, 143, e.status(t))
			status, _, _ = finish(t, "status", "--store", url, "job")
			require.Equal(t, 1, status)

			eventually(t, "the vacancy is seen", func() bool {
				lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
				return len(lines) >= 2 && strings.Contains(lines[len(lines)-1], `"state":"vacant"`)
			})

			status, stdout, _ = finish(t, "doctor", "--store", url, "--ttl", "4s")
			require.Zero(t, status, stdout)
			require.Regexp(t, "(?m)^(OK   |WARN ) round trip: ", stdout) // the machine may be busy
			require.Contains(t, stdout, "OK    roster: ")
		})
	}
}
