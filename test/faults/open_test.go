//go:build linux

package faults

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	filekv "github.com/electkv/election/backends/file"
	rediskv "github.com/electkv/election/backends/redis"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// The kinds of store in part.Store.
const (
	kindFile     = "file"
	kindEtcd     = "etcd"
	kindConsul   = "consul"
	kindRedis    = "redis"
	kindSentinel = "redis-sentinel"
	kindCluster  = "redis-cluster"
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
	kindMariaDB  = "mariadb"
	kindPaxos    = "paxos"
)

// open opens the store of a part, with clients set as the adapters' documents
// advise.
func open(p part) (store kv.Store, closeStore func(), err error) {
	nothing := func() {}
	switch p.Store {
	case kindFile:
		store, err := filekv.New(p.Addrs[0], nil)
		return store, nothing, err
	case kindEtcd:
		client, err := p.etcd()
		if err != nil {
			return nil, nil, err
		}
		if p.Observed {
			return etcdkv.NewObserved(client, &etcdkv.ObservedOptions{Backstop: p.Backstop}), func() { client.Close() }, nil
		}
		return etcdkv.New(client, &etcdkv.Options{Backstop: p.Backstop}), func() { client.Close() }, nil
	case kindConsul:
		client, err := p.consul()
		if err != nil {
			return nil, nil, err
		}
		if p.Observed {
			return consulkv.NewObserved(client, &consulkv.ObservedOptions{Backstop: p.Backstop}), nothing, nil
		}
		return consulkv.New(client, &consulkv.Options{MinTTL: time.Second, Backstop: p.Backstop}), nothing, nil
	case kindRedis, kindSentinel, kindCluster:
		client := p.redis()
		if p.Observed {
			options := &rediskv.ObservedOptions{Quarantine: p.Quarantine, Backstop: p.Backstop}
			return rediskv.NewObserved(client, options), func() { client.Close() }, nil
		}
		options := &rediskv.Options{Quarantine: p.Quarantine, Backstop: p.Backstop}
		return rediskv.New(client, options), func() { client.Close() }, nil
	case kindSQLite, kindPostgres, kindMariaDB:
		db, dialect, err := p.sql()
		if err != nil {
			return nil, nil, err
		}
		if p.Observed {
			return sqlkv.NewObserved(db, dialect, p.poll()), func() { db.Close() }, nil
		}
		return sqlkv.New(db, dialect, p.poll()), func() { db.Close() }, nil
	case kindPaxos:
		store, err := p.paxos()
		if err != nil {
			return nil, nil, err
		}
		return store, func() { store.Close() }, nil
	}
	return nil, nil, fmt.Errorf("unknown kind of store %q", p.Store)
}

// link returns the address at which a server is reached.
func (p part) link(addr string) string {
	if link, ok := p.Links[addr]; ok {
		return link
	}
	return addr
}

func (p part) etcd() (*clientv3.Client, error) {
	endpoints := []string{}
	for _, addr := range p.Addrs {
		endpoints = append(endpoints, p.link(addr))
	}
	options := []grpc.DialOption{}
	if p.keeper != nil {
		options = append(options, grpc.WithChainStreamInterceptor(p.keeper.stream), grpc.WithChainUnaryInterceptor(p.keeper.unary))
	}
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialOptions: options,
		Username: p.User, Password: p.Password,
		Logger:      zap.NewNop(),
		DialTimeout: 5 * time.Second,
		// The shortest that there are.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: time.Second,
	})
}

func (p part) consul() (*api.Client, error) {
	config := api.DefaultConfig()
	config.Address = p.link(p.Addrs[0])
	config.Token = p.Token
	return api.NewClient(config)
}

// redis returns a client that finds its servers by itself, and reaches each by
// its link.
func (p part) redis() redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs:    p.Addrs,
		Username: p.User, Password: p.Password,
		IsClusterMode:         p.Store == kindCluster,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true, // it would take a new connection another round trip
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, p.link(addr))
		},
	}
	if p.Store == kindSentinel {
		options.MasterName = testenv.RedisPrimaryName
	}
	return redis.NewUniversalClient(options)
}
