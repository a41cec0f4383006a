package paxoskv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// TestMembersOverTCPKeepTheContract opens members and a client of one cluster in turn.
func TestMembersOverTCPKeepTheContract(t *testing.T) {
	authority := testenv.NewAuthority(t)
	opts := paxoskv.Options{Cluster: "contract", TLS: authority.Config("127.0.0.1"), MaxTTL: 2 * time.Minute}
	for range 3 {
		opts.Peers = append(opts.Peers, testenv.FreeAddr(t))
	}
	var stores []*paxoskv.Store
	for _, id := range append(opts.Peers, "") {
		own := opts
		if own.ID = id; id != "" {
			own.Dir, own.Founding = t.TempDir(), true
		}
		s, err := paxoskv.New(own)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	opened := 0
	kvtest.Run(t, kvtest.Backend{TTL: time.Second, Open: func(testing.TB) kv.Store {
		opened++
		return stores[opened%len(stores)]
	}})
}
