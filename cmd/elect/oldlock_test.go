//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// etcdSession returns a session of an old client, and the prefix of the test.
func etcdSession(t *testing.T, addr string) *concurrency.Session {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	require.NoError(t, err)
	session, err := concurrency.NewSession(client)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, session.Close())
		require.NoError(t, client.Close())
	})
	return session
}

// row returns the one line of JSON that status prints for "job".
func row(t *testing.T, store string) (fields map[string]any, status int, stderr string) {
	t.Helper()
	status, stdout, stderr := finish(t, "status", "--store", store, "-o", "json", "job")
	require.Equal(t, 1, strings.Count(stdout, "\n"), stdout)
	require.NoError(t, json.Unmarshal([]byte(stdout), &fields))
	delete(fields, "time")
	return fields, status, stderr
}

func TestStatusSaysWhatAnOldLockOfEtcdLooksLikeAndHowManyWait(t *testing.T) {
	t.Parallel()
	addr, prefix := testenv.Etcd(t), "/status-"+rand.Text()
	store := "etcd://" + addr + "/" + prefix
	first, second := etcdSession(t, addr), etcdSession(t, addr)
	old := concurrency.NewElection(first, prefix+"/job")
	require.NoError(t, old.Campaign(t.Context(), "host-7"))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := concurrency.NewMutex(second, prefix+"/job")
	waited := make(chan error, 1)
	go func() { waited <- waiting.Lock(ctx) }()
	eventually(t, "the second is in line", func() bool {
		resp, err := first.Client().Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == 2
	})

	fields, status, stderr := row(t, store+"?layout=queue")
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Equal(t, map[string]any{
		"name": "job", "id": "", "value": "host-7", "token": float64(old.Rev()), "state": "foreign",
		"lock": "concurrency.Election, etcdctl elect or v3election", "waiting": 1.,
	}, fields)
	status, stdout, stderr := finish(t, "status", "--store", store+"?layout=queue", "job", "other")
	require.Equal(t, 1, status)
	require.Empty(t, stderr)
	rows := [][]string{}
	for line := range strings.Lines(stdout) {
		rows = append(rows, strings.Fields(line))
	}
	note := strings.Fields("looks like concurrency.Election, etcdctl elect or v3election, 1 waiting")
	require.Equal(t, [][]string{
		{"NAME", "STATE", "LEADER", "TOKEN", "VALUE", "NOTE"},
		append([]string{"job", "foreign", "-", fmt.Sprint(old.Rev()), "host-7"}, note...),
		{"other", "vacant", "-", "-", "-"},
	}, rows)

	// The default layout does not see it.
	fields, status, stderr = row(t, store)
	require.Equal(t, 1, status)
	require.Equal(t, "vacant", fields["state"])
	require.Contains(t, fields["hidden"], "looks like concurrency.Election")
	require.Regexp(t, `^elect: job: this URL does not see the lock at "`+prefix+`/job/[0-9a-f]+": looks like concurrency.Election, .*, 1 waiting; do: use layout=queue in the URL .*\n$`, stderr)
	status, stdout, _ = finish(t, "doctor", "--store", store, "job")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAIL  name job: at ")
	status, stdout, _ = finish(t, "doctor", "--store", store+"?layout=queue&plain=true", "job")
	require.Zero(t, status, stdout)

	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
}

func TestRunTakesItsTurnInTheLineOfAnOldLock(t *testing.T) {
	t.Parallel()
	addr, prefix := testenv.Etcd(t), "/run-"+rand.Text()
	p := newPlace(t)
	p.store = "etcd://" + addr + "/" + prefix + "?layout=queue&plain=true"
	session := etcdSession(t, addr)
	old := concurrency.NewMutex(session, prefix+"/job")
	require.NoError(t, old.Lock(t.Context()))
	p.run(stay, "--id", "me", "--value", "my address", "--ttl", "1m", "--grace", "500ms")
	eventually(t, "it waits in line", func() bool {
		resp, err := session.Client().Get(t.Context(), prefix+"/job/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == 2
	})
	fields, _, _ := row(t, p.store)
	require.Equal(t, "foreign", fields["state"])
	require.Equal(t, "1", fmt.Sprint(fields["waiting"]))
	require.False(t, p.has("child"))
	require.NoError(t, old.Unlock(t.Context()))
	p.pid("child")
	var status int
	fields, status, _ = row(t, p.store)
	require.Zero(t, status)
	require.Equal(t, "leader", fields["state"])
	require.Equal(t, "me", fields["id"])
	require.Equal(t, "0", fmt.Sprint(fields["waiting"]))

	leader, err := concurrency.NewElection(etcdSession(t, addr), prefix+"/job").Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, "my address", string(leader.Kvs[0].Value), "an old observer reads the value as it is")
	require.ErrorIs(t, concurrency.NewMutex(etcdSession(t, addr), prefix+"/job").TryLock(t.Context()), concurrency.ErrLocked)
}

func TestStatusSaysWhatOldLocksOfConsulAndRedisLookLike(t *testing.T) {
	t.Parallel()
	config := api.DefaultConfig()
	config.Address = testenv.Consul(t)
	consul, err := api.NewClient(config)
	require.NoError(t, err)
	prefix := "status-" + rand.Text()
	lock, err := consul.LockOpts(&api.LockOptions{Key: prefix + "/job", Value: []byte("host-7")})
	require.NoError(t, err)
	_, err = lock.Lock(nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Unlock()) })
	fields, status, stderr := row(t, "consul://"+config.Address+"/"+prefix)
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Equal(t, map[string]any{
		"name": "job", "id": "", "value": "host-7", "token": fields["token"], "state": "foreign", "lock": "api.Lock",
	}, fields)

	addr := testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, client.SetNX(t.Context(), prefix+"job", "OZGbK8s5aQW8HLfx6k5IBgnode-1", time.Minute).Err())
	t.Cleanup(func() { client.Del(context.Background(), prefix+"job") })
	fields, status, _ = row(t, "redis://"+addr+"?prefix="+url.QueryEscape(prefix))
	require.Zero(t, status)
	require.Equal(t, "redislock", fields["lock"])
	require.Equal(t, "OZGbK8s5aQW8HLfx6k5IBgnode-1", fields["value"])
	require.NotContains(t, fields, "waiting")
}

func TestDoctorLeavesNothingInAnyLayout(t *testing.T) {
	t.Parallel()
	prefix := "doctor-" + rand.Text()
	etcd := "etcd://" + testenv.Etcd(t) + "/" + prefix
	consul := "consul://" + testenv.Consul(t) + "/" + prefix
	redisURL := "redis://" + testenv.Redis(t) + "?prefix=" + prefix
	for _, store := range []string{
		etcd + "?plain=true", etcd + "?layout=queue", etcd + "?layout=claim&plain=true", consul + "?plain=true", redisURL + "&plain=true",
	} {
		status, stdout, stderr := finish(t, "doctor", "--store", store, "job")
		require.Zero(t, status, stdout+stderr)
	}
	resp, err := etcdSession(t, testenv.Etcd(t)).Client().Get(t.Context(), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
	config := api.DefaultConfig()
	config.Address = testenv.Consul(t)
	client, err := api.NewClient(config)
	require.NoError(t, err)
	keys, _, err := client.KV().Keys(prefix, "", nil)
	require.NoError(t, err)
	require.Empty(t, keys)
	left, err := redis.NewClient(&redis.Options{Addr: testenv.Redis(t)}).Keys(t.Context(), "*"+prefix+"*").Result()
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestForgetRemovesWhatALostRecordHasLeftBesideItsKey(t *testing.T) {
	t.Parallel()
	prefix, ctx := "forget-"+rand.Text(), t.Context()
	record := kv.Record{Signature: "us", Value: "host-7", TTL: time.Minute}
	lose := func(storeURL, key string, remove func(key string)) {
		t.Helper()
		address, err := stores.Parse(storeURL, func(string) string { return "" })
		require.NoError(t, err)
		store, err := address.Open()
		require.NoError(t, err)
		_, err = store.KV.Create(ctx, "job", record)
		require.NoError(t, err)
		remove(key)
		require.NoError(t, store.Forget("job"))
		require.NoError(t, store.Close())
	}

	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t)})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	lose("redis://"+testenv.Redis(t)+"?plain=true&prefix="+prefix, prefix+"job", func(key string) {
		require.NoError(t, client.Del(ctx, key).Err())
		require.Equal(t, int64(1), client.Exists(ctx, "{"+key+"}:election-record").Val())
	})
	left, err := client.Keys(ctx, "*"+prefix+"*").Result()
	require.NoError(t, err)
	require.Empty(t, left)

	config := api.DefaultConfig()
	config.Address = testenv.Consul(t)
	consul, err := api.NewClient(config)
	require.NoError(t, err)
	lose("consul://"+config.Address+"/"+prefix+"?plain=true", prefix+"/job", func(key string) {
		pair, _, err := consul.KV().Get(key, nil)
		require.NoError(t, err)
		_, err = consul.KV().Delete(key, nil)
		require.NoError(t, err)
		_, err = consul.Session().Destroy(pair.Session, nil)
		require.NoError(t, err)
		pair, _, err = consul.KV().Get(key+".election", nil)
		require.NoError(t, err)
		require.NotNil(t, pair)
		require.Empty(t, pair.Session)
	})
	keys, _, err := consul.KV().Keys(prefix, "", nil)
	require.NoError(t, err)
	require.Empty(t, keys)
}
