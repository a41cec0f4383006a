//go:build linux

package migrate

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
)

// rollouts are those of the pages, by name.
func rollouts() map[string]rollout {
	etcd := func(t *testing.T) string { return "http://" + testenv.StartEtcd(t).Addr() }
	consul := func(t *testing.T) string { return "http://" + testenv.StartConsul(t).Addr() }
	redis := func(t *testing.T) string { return testenv.StartRedis(t).Addr() }
	redisURL := func(t *testing.T) string { return "redis://" + redis(t) }
	return map[string]rollout{
		"etcd-mutex": {
			serve: etcd, env: "ETCDCTL_ENDPOINTS", seen: `""`, work: inEtcd("/billing/last"), line: true,
			crash: 10 * time.Second,
		},
		"etcd-election": {
			serve: etcd, env: "ETCDCTL_ENDPOINTS", seen: "HOST", read: inEtcd("/elections/billing/"), line: true,
			crash: 10 * time.Second,
		},
		"consul-api-lock": {
			serve: consul, env: "CONSUL_HTTP_ADDR", seen: "HOST", read: inConsul("locks/billing"), work: inConsul("billing/last"),
			crash: (2*10 + 15) * time.Second, closed: "waiting for the store to open the safe.*lock-delay",
		},
		"consul-lock-command": {
			serve: consul, env: "CONSUL_HTTP_ADDR", seen: `""`,
		},
		"redsync": {
			serve: redisURL, env: "REDIS_URL", seen: `\S+==`, work: inRedis("billing:last"),
			denied: "lock already taken", crash: 8 * time.Second,
		},
		"redislock": {
			serve: redisURL, env: "REDIS_URL", seen: `\S{22}HOST`, work: inRedis("billing:last"),
			crash: 10 * time.Second,
		},
		"rueidislock": {
			serve: redis, env: "REDIS_ADDR", seen: `".*"`, work: inRedis("billing:last"),
			crash: 5 * time.Second,
		},
		"set-nx": {
			serve: redisURL, env: "REDIS_URL", seen: "HOST", read: inRedis("lock:billing"), mark: "/new", work: inRedis("billing:last"),
			crash: 10 * time.Second, also: []scene{stuckKey, sleeper},
		},
		"two-locks": {serve: redis, env: "REDIS_ADDR"},
	}
}

// inEtcd returns the value of the key that was created first below a prefix.
func inEtcd(prefix string) reader {
	return func(ctx context.Context, addr string) (string, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
		if err != nil {
			return "", err
		}
		defer client.Close()
		got, err := client.Get(ctx, prefix, clientv3.WithFirstCreate()...)
		if err != nil || len(got.Kvs) == 0 {
			return "", err
		}
		return string(got.Kvs[0].Value), nil
	}
}

func inConsul(key string) reader {
	return func(ctx context.Context, addr string) (string, error) {
		config := api.DefaultConfig()
		config.Address = addr
		client, err := api.NewClient(config)
		if err != nil {
			return "", err
		}
		pair, _, err := client.KV().Get(key, new(api.QueryOptions).WithContext(ctx))
		if err != nil || pair == nil {
			return "", err
		}
		return string(pair.Value), nil
	}
}

func inRedis(key string) reader {
	return func(ctx context.Context, addr string) (string, error) {
		client, err := connect(addr)
		if err != nil {
			return "", err
		}
		defer client.Close()
		value, err := client.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return "", nil
		}
		return value, err
	}
}

// connect takes an address or a URL.
func connect(addr string) (*redis.Client, error) {
	config, err := redis.ParseURL("redis://" + strings.TrimPrefix(addr, "redis://"))
	if err != nil {
		return nil, err
	}
	return redis.NewClient(config), nil
}

// stuckKey leaves a lock as a program does that has crashed between SETNX and
// EXPIRE. It is told of, waited for, and free when somebody removes it.
func stuckKey(t *testing.T, s *stage, bin, addr string, _, next program) {
	client, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetNX(t.Context(), "lock:billing", "crashed", 0).Err(); err != nil {
		t.Fatal(err)
	}
	candidate := s.start(bin, next, "new-3")
	s.await(patience, "waiting for a record that this library did not write and that never expires: .* value=crashed")
	s.pass(settle)
	if s.leading != "" {
		t.Fatal("it led beside a stuck lock")
	}
	if err := client.Del(t.Context(), "lock:billing").Err(); err != nil {
		t.Fatal(err)
	}
	s.await(patience, "^new-3 .*leading$")
	candidate.stop()
	candidate.gone()
}

// sleeper has an old leader sleep beyond its lock, on the host that then has a new
// one. When it wakes up it finds that the lock is lost: what is there has another value.
func sleeper(t *testing.T, s *stage, bin, addr string, old, next program) {
	if !strings.Contains(old.Text, "extend.Run") {
		return // it never looks, as the page says
	}
	client, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	asleep := s.start(bin, old, "web-0")
	s.await(patience, "^web-0 .*leading$")
	asleep.signal(syscall.SIGSTOP)
	defer asleep.signal(syscall.SIGCONT)
	if err := client.Del(t.Context(), "lock:billing").Err(); err != nil { // it expires
		t.Fatal(err)
	}
	s.pass(0)
	s.leading = "" // it does nothing

	candidate := s.start(bin, next, "web-0")
	s.await(patience, "^web-0 .*leading$")
	asleep.signal(syscall.SIGCONT)
	s.await(patience, "^web-0 .*the lock is lost$")
	s.leading = "web-0" // the other one stopped
	s.pass(settle)
	value, err := inRedis("lock:billing")(t.Context(), addr)
	if err != nil || value != "web-0/new" {
		t.Fatalf("the new one leads no more: %q, %v", value, err)
	}
	asleep.finish()
	asleep.gone()
	candidate.stop()
	candidate.gone()
}
