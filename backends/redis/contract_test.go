package rediskv_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

const prefix = "kvtest/"

func TestASingleServerKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, &rediskv.Options{Prefix: prefix}, testenv.Redis(t)))
}

func TestAClusterKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, &rediskv.Options{Prefix: prefix}, testenv.StartRedisCluster(t, 3, 0).Addrs()...))
}

func TestWithPlainValuesASingleServerKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, &rediskv.Options{Prefix: prefix, Plain: true}, testenv.Redis(t)))
}

func TestWithPlainValuesAClusterKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backend(t, &rediskv.Options{Prefix: prefix, Plain: true}, testenv.StartRedisCluster(t, 3, 0).Addrs()...))
}

// backend is a server, or a cluster of several.
func backend(t *testing.T, opts *rediskv.Options, addrs ...string) kvtest.Backend {
	return backendOf(t, func(c redis.UniversalClient) kv.Store { return rediskv.New(c, opts) }, addrs...)
}

// backendOf is the same with whatever store is made of a client.
func backendOf(t *testing.T, store func(redis.UniversalClient) kv.Store, addrs ...string) kvtest.Backend {
	var sent requests
	others := operator{dial(t, addrs...), prefix}
	open := func(t testing.TB) kv.Store { return store(sent.count(dial(t, addrs...))) }
	return kvtest.Backend{Open: open, Put: others.put, Remove: others.remove, Requests: sent.Load}
}
