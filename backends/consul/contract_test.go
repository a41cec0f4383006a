//go:build unix

package consulkv_test

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestAStoreOnOneServerKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, testenv.Consul(t)))
}

func TestAStoreOnAClusterKeepsTheContract(t *testing.T) {
	kvtest.Run(t, backend(t, testenv.StartConsulCluster(t).Addrs()...))
}

// backend opens its clients at the addresses in turn.
func backend(t *testing.T, addrs ...string) kvtest.Backend {
	open, count := dialEach(addrs)
	operator := dial(t, addrs[0])
	return kvtest.Backend{
		Open: func(t testing.TB) kv.Store { return consulkv.New(open(t), options) },
		TTL:  ttl,
		Put: func(t testing.TB, name, value string) {
			_, err := operator.KV().Put(&api.KVPair{Key: name, Value: []byte(value)}, nil)
			require.NoError(t, err)
		},
		Remove: func(t testing.TB, name string) {
			_, err := operator.KV().Delete(name, nil)
			require.NoError(t, err)
		},
		Requests: count,
	}
}
