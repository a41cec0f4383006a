package storeurl

import (
	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

// Otherwise returns an etcd, a Consul or a Redis as it would be if its URL said the other of
// who judges that a record is over, for reading: where each keeps a safe at its key,
// so that either takes the other's records for somebody else's. It is nil for other
// stores.
func (s *Store) Otherwise() kv.Store {
	switch {
	case s.Etcd != nil && s.Observed:
		return etcdkv.New(s.Etcd, &etcdkv.Options{Prefix: s.prefix, Suffix: s.suffix})
	case s.Etcd != nil:
		return etcdkv.NewObserved(s.Etcd, &etcdkv.ObservedOptions{Prefix: s.prefix, Suffix: s.suffix})
	case s.Consul != nil && s.Observed:
		return consulkv.New(s.Consul, &consulkv.Options{Prefix: s.prefix})
	case s.Consul != nil:
		return consulkv.NewObserved(s.Consul, &consulkv.ObservedOptions{Prefix: s.prefix})
	case s.Redis != nil && s.Observed:
		return rediskv.New(s.Redis, &rediskv.Options{Prefix: s.prefix})
	case s.Redis != nil:
		return rediskv.NewObserved(s.Redis, &rediskv.ObservedOptions{Prefix: s.prefix})
	}
	return nil
}
