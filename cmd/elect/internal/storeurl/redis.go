package storeurl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

// redisParams are the URL parameters of Redis besides TLS.
func redisParams() []string {
	return []string{"master", "cluster", "sentinel-user", "prefix", "quarantine", "plain", expiryParam}
}

func parseRedis(l *location) (opener, error) {
	if len(l.hosts) == 0 {
		return nil, errors.New("no host")
	}
	db, err := l.database()
	if err != nil {
		return nil, err
	}
	cluster, err := l.flag("cluster")
	if err != nil {
		return nil, err
	}
	master := l.query.Get("master")
	switch {
	case cluster && master != "":
		return nil, errors.New("cluster and master exclude each other")
	case cluster && db != 0:
		return nil, errors.New("a cluster has no database but 0")
	case !cluster && master == "" && len(l.hosts) > 1:
		return nil, errors.New("several hosts, but neither cluster=true nor master=name")
	}
	secure, err := l.tlsConfig(tlsSource{})
	if err != nil {
		return nil, err
	}
	port := "6379"
	if master != "" {
		port = "26379"
	}
	options := &redis.UniversalOptions{
		Addrs:            l.addresses(port),
		DB:               db,
		Username:         l.user,
		Password:         l.password,
		MasterName:       master,
		SentinelUsername: l.query.Get("sentinel-user"),
		SentinelPassword: l.env("REDISCLI_SENTINEL_AUTH"),
		TLSConfig:        secure,
		IsClusterMode:    cluster,
		// Otherwise a call does not end when its context does.
		ContextTimeoutEnabled: true,
		// It would take a new connection another round trip.
		DisableIdentity: true,
	}
	if options.Password == "" {
		options.Password = l.env("REDISCLI_AUTH")
	}
	quarantine, err := l.duration("quarantine")
	if err != nil {
		return nil, err
	}
	plain, err := l.flag("plain")
	if err != nil {
		return nil, err
	}
	observed, err := l.observed()
	if err != nil {
		return nil, err
	}
	if observed && plain {
		return nil, errors.New("expiry=observer and plain exclude each other: a plain value ends with its key's expiry, which the server judges")
	}
	prefix := l.query.Get("prefix")
	return func(context.Context, purpose) (*Store, error) {
		client := redis.NewUniversalClient(options)
		with := func(plain bool, _ etcdkv.Layout) kv.Store {
			if observed && !plain {
				return rediskv.NewObserved(client, &rediskv.ObservedOptions{Prefix: prefix, Quarantine: quarantine})
			}
			return rediskv.New(client, &rediskv.Options{Prefix: prefix, Quarantine: quarantine, Plain: plain})
		}
		return &Store{KV: with(plain, 0), Redis: client, closer: client, prefix: prefix, Observed: observed, Plain: plain, with: with, addresses: options.Addrs}, nil
	}, nil
}

// database returns the number in the path, by default 0.
func (l *location) database() (int, error) {
	path := strings.Trim(l.path, "/")
	if path == "" {
		return 0, nil
	}
	db, err := strconv.ParseUint(path, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the path is not the number of a database; prefix is a parameter")
	}
	return int(db), nil
}
