package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

// ttl is the one of the elections that are played.
const ttl = 3 * time.Second

// A cluster is a store of several servers.
type cluster struct {
	name  string
	store kv.Store
	urls  []string // one for each candidate, as elect takes them
	// leader returns the service that leads the others. It fails unless all servers
	// answer and agree.
	leader func(context.Context) (string, error)
	// network is the service that has the network of all the servers, empty if each
	// has its own.
	network string
	// bound is set if a server listens on the address that it had when it started.
	bound bool
	// recovery is how long the store itself may be without a leader, and its clients
	// take to notice.
	recovery time.Duration
	close    func() error
}

// clusters returns those of the profile "cluster".
func clusters(f *file) ([]*cluster, error) {
	var all []*cluster
	for _, open := range []func(*file) (*cluster, error){etcdCluster, consulCluster, redisCluster} {
		c, err := open(f)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// published returns where the services listen, one address each.
func (f *file) published(names ...string) ([]string, error) {
	found := make([]string, len(names))
	for i, name := range names {
		addresses := f.Services[name].addresses()
		if len(addresses) != 1 {
			return nil, fmt.Errorf("%s: the service %s has %d ports, and is to have one", composeFile, name, len(addresses))
		}
		found[i] = addresses[0]
	}
	return found, nil
}

func etcdCluster(f *file) (*cluster, error) {
	names := []string{"etcd-1", "etcd-2", "etcd-3"}
	addresses, err := f.published(names...)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: slices.Clone(addresses), Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	url := "etcd://" + addresses[0] + "," + addresses[1] + "," + addresses[2]
	return &cluster{
		name:  "etcd",
		store: etcdkv.New(client, nil),
		urls:  []string{url, url, url},
		leader: func(ctx context.Context) (string, error) {
			return agreed(names, func(i int) (self, leader string, err error) {
				status, err := client.Status(ctx, addresses[i])
				if err != nil {
					return "", "", err
				}
				return fmt.Sprint(status.Header.MemberId), fmt.Sprint(status.Leader), nil
			})
		},
		// A client gives a member that went silent up 10 s later (see the keep-alive of
		// elect's), and the others elect a leader within three.
		recovery: 13 * time.Second,
		close:    client.Close,
	}, nil
}

func consulCluster(f *file) (*cluster, error) {
	names := []string{"consul-1", "consul-2", "consul-3"}
	addresses, err := f.published(names...)
	if err != nil {
		return nil, err
	}
	c := &cluster{name: "consul", bound: true, close: func() error { return nil }}
	agents := make([]*api.Client, len(addresses))
	for i, address := range addresses {
		agents[i], err = api.NewClient(&api.Config{Address: address})
		if err != nil {
			return nil, err
		}
		c.urls = append(c.urls, "consul://"+address+"/?min-ttl=1s")
	}
	c.store = consulkv.New(agents[0], &consulkv.Options{MinTTL: time.Second})
	c.leader = func(ctx context.Context) (string, error) {
		return agreed(names, func(i int) (self, leader string, err error) {
			about, err := agents[i].Agent().Self()
			if err != nil {
				return "", "", err
			}
			member, raft := about["Member"], about["Stats"]["raft"]
			if stats, ok := raft.(map[string]any); !ok || stats["num_peers"] != "2" {
				return "", "", fmt.Errorf("a server that has not two peers: %v", raft)
			}
			leader, err = agents[i].Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
			return net.JoinHostPort(fmt.Sprint(member["Addr"]), "8300"), leader, err
		})
	}
	// Servers pass blocking queries on to the leader. Where that has vanished, they
	// end seven seconds after their time is up: 10 s, and up to a sixteenth more.
	c.recovery = 10*time.Second + 18*time.Second
	return c, nil
}

// agreed returns the server that all servers name as their leader.
func agreed(names []string, view func(i int) (self, leader string, err error)) (string, error) {
	selves, named := make([]string, len(names)), ""
	for i, name := range names {
		self, leader, err := view(i)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", name, err)
		case i > 0 && leader != named:
			return "", fmt.Errorf("%s has the leader %q, and others %q", name, leader, named)
		}
		selves[i], named = self, leader
	}
	if i := slices.Index(selves, named); i >= 0 {
		return names[i], nil
	}
	return "", fmt.Errorf("all have the leader %q, which is none of %q", named, selves)
}

func redisCluster(f *file) (*cluster, error) {
	sentinels := f.Services["redis-net"].addresses()
	nodes := map[string]string{}
	for address, name := range map[string]string{"127.0.0.1:6391": "redis-primary", "127.0.0.1:6392": "redis-replica"} {
		i := slices.Index(sentinels, address)
		if i < 0 {
			return nil, fmt.Errorf("%s: the service redis-net does not publish %s", composeFile, address)
		}
		sentinels, nodes[address] = slices.Delete(sentinels, i, i+1), name
	}
	redis.SetLogger(silence{}) // what fails comes back as an error as well
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "primary", SentinelAddrs: sentinels, ContextTimeoutEnabled: true,
	})
	url := fmt.Sprintf("redis://%s,%s,%s/?master=primary", sentinels[0], sentinels[1], sentinels[2])
	return &cluster{
		name:  "redis",
		store: rediskv.New(client, nil),
		urls:  []string{url, url, url},
		leader: func(ctx context.Context) (string, error) {
			address, err := redisPrimary(ctx, sentinels)
			return nodes[address], err
		},
		network: "redis-net",
		// The sentinels take two seconds to notice, and begin again after ten if their
		// votes were split.
		recovery: 20 * time.Second,
		close:    client.Close,
	}, nil
}

// redisPrimary returns the address that all sentinels have for the primary, if they
// see it and one replica of it well, and all the others.
func redisPrimary(ctx context.Context, sentinels []string) (string, error) {
	named := ""
	for i, address := range sentinels {
		client := redis.NewSentinelClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
		primary, err := client.Master(ctx, "primary").Result()
		replicas, err2 := client.Replicas(ctx, "primary").Result()
		if err := errors.Join(err, err2, client.Close()); err != nil {
			return "", fmt.Errorf("the sentinel at %s: %w", address, err)
		}
		at := net.JoinHostPort(primary["ip"], primary["port"])
		switch {
		case primary["flags"] != "master" || primary["num-other-sentinels"] != fmt.Sprint(len(sentinels)-1):
			return "", fmt.Errorf("the sentinel at %s has the primary %s: %s, and %s other sentinels", address, at, primary["flags"], primary["num-other-sentinels"])
		case len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok":
			return "", fmt.Errorf("the sentinel at %s has no replica that is in step: %v", address, replicas)
		case i > 0 && at != named:
			return "", fmt.Errorf("the sentinel at %s has the primary %s, and others %s", address, at, named)
		}
		named = at
	}
	return named, nil
}

// A silence logs nothing.
type silence struct{}

// Printf implements the logger of package redis.
func (silence) Printf(context.Context, string, ...any) {}
