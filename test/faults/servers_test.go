//go:build linux

package faults

import (
	"path/filepath"
	"testing"

	"github.com/electkv/election/internal/testenv"
)

// Servers are what a store runs on.
type servers struct {
	nodes []*testenv.Server // those that keep the data; none for a directory
	addrs []string          // what a client is given
	all   []string          // all that it may connect to
	// leader returns the node that takes the writes of the election called name.
	leader func(name string) *testenv.Server

	database string // on a server that has several

	cluster  *testenv.Cluster       // of etcd3 and consul3
	sentinel *testenv.RedisSentinel // of redis-sentinel
	shards   *testenv.RedisCluster  // of redis-cluster
	peers    *terms                 // of members that keep safes together

	middleman *middleman      // between candidates and Consul, in rows that have one
	muter     *muter          // between candidates and etcd, in rows that have one
	hosts     []*testenv.Host // of the servers, in rows in which they have some
	disk      *testenv.Disk   // of a directory, in rows that have one
}

// alone returns servers that are one.
func alone(s *testenv.Server) *servers {
	return &servers{
		nodes: []*testenv.Server{s}, addrs: []string{s.Addr()}, all: []string{s.Addr()},
		leader: func(string) *testenv.Server { return s },
	}
}

func ofCluster(c *testenv.Cluster) *servers {
	return &servers{
		nodes: c.Nodes, addrs: c.Addrs(), all: c.Addrs(), cluster: c,
		leader: func(string) *testenv.Server { return c.Leader() },
	}
}

// shared returns servers that somebody else runs for all tests.
func shared(addr string) *servers {
	return &servers{addrs: []string{addr}, all: []string{addr}}
}

func startFile(t testing.TB) *servers {
	return &servers{addrs: []string{t.TempDir()}}
}

func startSentinel(t testing.TB, args ...string) *servers {
	s := testenv.StartRedisSentinel(t, 3, args...)
	all := s.SentinelAddrs()
	for _, node := range s.Nodes {
		all = append(all, node.Addr())
	}
	return &servers{
		nodes: s.Nodes, addrs: s.SentinelAddrs(), all: all, sentinel: s,
		leader: func(string) *testenv.Server { return s.Primary() },
	}
}

func startShards(t testing.TB, args ...string) *servers {
	c := testenv.StartRedisCluster(t, 3, 1, args...)
	return &servers{nodes: c.Nodes, addrs: c.Addrs(), all: c.Addrs(), leader: c.Owner, shards: c}
}

// startSQLite returns where the file of a database is to be.
func startSQLite(t testing.TB) *servers {
	return &servers{addrs: []string{filepath.Join(t.TempDir(), "election.db")}}
}

// inPostgres makes a database of the test's own.
func inPostgres(t testing.TB, s *servers) *servers {
	s.database = testenv.NewPostgresDatabase(t, s.addrs[0])
	return s
}

// inMariaDB makes a database of the test's own.
func inMariaDB(t testing.TB, s *servers) *servers {
	s.database = testenv.NewMySQLDatabase(t, s.addrs[0])
	return s
}

// others returns the nodes but for one.
func (s *servers) others(not *testenv.Server) []*testenv.Server {
	rest := []*testenv.Server{}
	for _, node := range s.nodes {
		if node != not {
			rest = append(rest, node)
		}
	}
	return rest
}

// of returns the address of which a candidate, number i, is told: a Consul
// client knows one server, a directory has one path, others know all.
func (s *servers) of(kind string, i int) []string {
	if kind == kindConsul || kind == kindFile || kind == kindSQLite {
		return []string{s.addrs[i%len(s.addrs)]}
	}
	return s.addrs
}
