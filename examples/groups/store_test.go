package main

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

func openRedis(t *testing.T, addr string) kv.Store {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return rediskv.New(client, nil)
}

func openEtcd(t *testing.T, addr string) kv.Store {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return etcdkv.New(client, nil)
}
