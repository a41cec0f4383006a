package rediskv_test

import (
	"testing"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestASingleServerKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, testenv.Redis(t)))
}

func TestAClusterKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...))
}

// backend is a server, or a cluster of several.
func backend(t *testing.T, addrs ...string) kvtest.Backend {
	var sent requests
	others := operator{dial(t, addrs...), "kvtest/"}
	store := func(t testing.TB) kv.Store {
		return rediskv.New(sent.count(dial(t, addrs...)), &rediskv.Options{Prefix: others.prefix})
	}
	return kvtest.Backend{Open: store, Put: others.put, Remove: others.remove, Requests: sent.Load}
}
