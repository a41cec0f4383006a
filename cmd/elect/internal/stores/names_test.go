//go:build unix

package stores_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// both opens the store of a URL, to write and to read.
func both(t *testing.T, url string) (writer, reader *stores.Store) {
	t.Helper()
	address, err := stores.Parse(url, nothing)
	require.NoError(t, err)
	writer, err = address.Open()
	require.NoError(t, err)
	t.Cleanup(func() { writer.Close() })
	reader, err = address.Observe()
	require.NoError(t, err)
	t.Cleanup(func() { reader.Close() })
	return writer, reader
}

// put puts a record into each safe.
func put(t *testing.T, s *stores.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := s.KV.Create(t.Context(), name, kv.Record{Signature: "me/1", Value: "here", TTL: 10 * time.Minute})
		require.NoError(t, err, name)
	}
}

func requireElections(t *testing.T, s *stores.Store, prefix string, want ...string) {
	t.Helper()
	names, more, err := s.Elections(t.Context(), prefix, 100)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, want, names)
}

// listed are URLs of all kinds of stores that tell the names of elections, each with nothing
// in it.
func listed(t *testing.T) map[string]string {
	t.Helper()
	room := strings.ToLower(rand.Text())
	postgres, mariadb := testenv.Postgres(t), testenv.MariaDB(t)
	cluster := testenv.StartRedisCluster(t, 3, 0)
	etcd, consul, one := "etcd://"+testenv.Etcd(t)+"/"+room, "consul://"+testenv.Consul(t)+"/"+room, "redis://"+testenv.Redis(t)
	return map[string]string{
		"file":            "file://" + filepath.Join(t.TempDir(), "elect"),
		"sqlite":          "sqlite://" + t.TempDir() + "/elect.db",
		"postgres":        testenv.PostgresURL(postgres, testenv.NewPostgresDatabase(t, postgres)),
		"mysql":           "mysql://" + testenv.MySQLUser + "@" + mariadb + "/" + testenv.NewMySQLDatabase(t, mariadb),
		"etcd":            etcd + "-a",
		"etcd/observer":   etcd + "-b?expiry=observer",
		"etcd/plain":      etcd + "-c?plain=true",
		"consul":          consul + "-a?min-ttl=1s",
		"consul/observer": consul + "-b?expiry=observer",
		"consul/plain":    consul + "-c?min-ttl=1s&plain=true",
		"redis":           one + "?prefix=*" + room + "-a:",
		"redis/observer":  one + "?expiry=observer&prefix=" + room + "-b:",
		"redis/plain":     one + "?plain=true&prefix={" + room + "}-c:",
		"redis/cluster":   "redis://" + strings.Join(cluster.Addrs(), ",") + "?cluster=true",
	}
}

func TestAStoreTellsTheNamesOfItsElections(t *testing.T) {
	for kind, url := range listed(t) {
		t.Run(kind, func(t *testing.T) {
			writer, reader := both(t, url)
			requireElections(t, reader, "")
			long := "team-b/" + strings.Repeat("long", 100)
			put(t, writer, "team-a/Reports", "team-a/billing", "team-a/billing:heir", "team-a/waits:heir", "team-b/jobs", long)
			requireElections(t, reader, "team-a/", "team-a/Reports", "team-a/billing", "team-a/waits")
			requireElections(t, reader, "team-a/b", "team-a/billing")
			requireElections(t, reader, "", "team-a/Reports", "team-a/billing", "team-a/waits", "team-b/jobs", long)
			requireElections(t, reader, "nothing")

			names, more, err := reader.Elections(t.Context(), "team-a/", 2)
			require.NoError(t, err)
			require.True(t, more)
			require.Len(t, names, 2)
		})
	}
}

func TestMembersOfARosterAreNotTakenForElections(t *testing.T) {
	for kind, url := range listed(t) {
		t.Run(kind, func(t *testing.T) {
			writer, reader := both(t, url)
			if _, ok := writer.KV.(kv.Roster); !ok {
				return
			}
			put(t, writer, "jobs", kv.MemberName("jobs", "a-1"), kv.MemberName("jobs", "b-1"))
			requireElections(t, reader, "", "jobs")
			requireElections(t, reader, "jobs", "jobs")
		})
	}
}

func TestManyElectionsAreListedPageByPage(t *testing.T) {
	for kind, url := range map[string]string{
		"sqlite": "sqlite://" + t.TempDir() + "/elect.db",
		"etcd":   "etcd://" + testenv.Etcd(t) + "/" + strings.ToLower(rand.Text()),
	} {
		t.Run(kind, func(t *testing.T) {
			writer, reader := both(t, url)
			want := []string{}
			for i := range 600 {
				want = append(want, fmt.Sprintf("job-%03d", i))
			}
			put(t, writer, want...)
			names, more, err := reader.Elections(t.Context(), "job", 1000)
			require.NoError(t, err)
			require.False(t, more)
			require.Equal(t, want, names)
		})
	}
}

func TestPlacesInLineAreNotTakenForElections(t *testing.T) {
	writer, reader := both(t, "etcd://"+testenv.Etcd(t)+"/"+strings.ToLower(rand.Text())+"?layout=queue&suffix=/&plain=true")
	put(t, writer, "jobs", "other")
	_, err := writer.KV.(kv.Queue).Join(t.Context(), "jobs", kv.Record{Signature: "you/1", TTL: 10 * time.Minute})
	require.NoError(t, err)
	requireElections(t, reader, "", "jobs", "other")
}

func TestWhatOtherProgramsKeepIsNoElection(t *testing.T) {
	room := strings.ToLower(rand.Text())

	_, reader := both(t, "etcd://"+testenv.Etcd(t)+"/"+room)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}})
	require.NoError(t, err)
	defer etcd.Close()
	_, err = etcd.Put(t.Context(), room+"/settings", "{}")
	require.NoError(t, err)
	requireElections(t, reader, "")

	_, reader = both(t, "consul://"+testenv.Consul(t)+"/"+room)
	consul, err := api.NewClient(&api.Config{Address: testenv.Consul(t)})
	require.NoError(t, err)
	_, err = consul.KV().Put(&api.KVPair{Key: room + "/settings", Value: []byte("{}")}, nil)
	require.NoError(t, err)
	requireElections(t, reader, "")

	_, reader = both(t, "redis://"+testenv.Redis(t)+"?prefix="+room)
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t)})
	defer client.Close()
	require.NoError(t, client.Set(t.Context(), room+"settings", "{}", time.Minute).Err())
	requireElections(t, reader, "")

	dir := t.TempDir()
	_, reader = both(t, "file://"+dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "safes", "settings"), []byte("{}"), 0o600))
	requireElections(t, reader, "")
}

func TestAStoreThatCannotListSaysWhatToDo(t *testing.T) {
	for url, want := range map[string]string{
		"mem:": "store mem: cannot list its elections: name them",
		"etcd://" + testenv.Etcd(t): "store etcd://" + testenv.Etcd(t) + ": list elections: the URL has no prefix, and other programs may keep anything there: " +
			"add one to the URL, or name elections",
		"redis://127.0.0.1:1": "connection refused",
	} {
		_, reader := both(t, url)
		_, _, err := reader.Elections(t.Context(), "", 1)
		require.ErrorContains(t, err, want)
	}
}
