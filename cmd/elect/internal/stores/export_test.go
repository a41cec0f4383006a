package stores

import "github.com/electkv/election/cmd/elect/internal/oldlock"

// ViewOf returns where a store keeps its records, if it is a server with keys.
func ViewOf(s *Store) *oldlock.View {
	switch b := s.Backend.(type) {
	case *etcdStore:
		return &b.view
	case *consulStore:
		return &b.view
	case *redisStore:
		return &b.view
	}
	return &oldlock.View{}
}

// Endpoints returns those of an etcd.
func Endpoints(s *Store) []string { return s.Backend.(*etcdStore).client.Endpoints() }
