//go:build linux

package faults

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcd returns a client of the stage's own, which uses no links.
func (s *stage) etcd() *clientv3.Client {
	s.t.Helper()
	client, err := s.director().etcd()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { client.Close() })
	return client
}

// consul returns a client of the stage's own, which uses no links.
func (s *stage) consul() *api.Client {
	s.t.Helper()
	client, err := s.director().consul()
	require.NoError(s.t, err)
	return client
}

// redis returns a client of the stage's own, which uses no links.
func (s *stage) redis() redis.UniversalClient {
	client := s.director().redis()
	s.t.Cleanup(func() { client.Close() })
	return client
}

// erase removes the election's record, as an operator does who thinks that he
// knows better.
func (s *stage) erase() {
	s.t.Helper()
	var err error
	switch s.col.kind {
	case kindFile:
		// At once, since candidates take the place of a folder that is empty.
		away := filepath.Join(s.addrs[0], "temps", "erased-"+rand.Text())
		if err = os.Rename(s.folder(), away); err == nil {
			err = os.RemoveAll(away)
		}
	case kindEtcd:
		_, err = s.etcd().Delete(s.t.Context(), s.name)
	case kindConsul:
		_, err = s.consul().KV().Delete(s.name, nil)
	case kindSQLite, kindPostgres, kindMariaDB:
		s.inSQL("DELETE FROM election WHERE name = ?", s.name)
	case kindPaxos:
		err = s.deleteOwn()
	default:
		err = s.redis().Del(s.t.Context(), s.name).Err()
	}
	require.NoError(s.t, err)
}
