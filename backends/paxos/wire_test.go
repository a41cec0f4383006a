package paxoskv_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
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
	opts := paxoskv.Options{
		Cluster: "contract", TLS: authority.Config("127.0.0.1"), MaxTTL: 10 * time.Minute,
		Round: 2 * time.Second, // a watch ends after five, in which a busy machine may have done nothing
	}
	for range 3 {
		opts.Peers = append(opts.Peers, testenv.FreeAddr(t))
	}
	var stores []*paxoskv.Store
	for _, id := range append(opts.Peers, "") {
		own := opts
		if own.ID = id; id != "" {
			own.Dir, own.Founding = t.TempDir(), true
		}
		s, err := paxoskv.New(&own)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores = append(stores, s)
	}
	for _, s := range stores { // on a busy machine they may need longer to connect than a watch waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := s.Get(ctx, "connected")
		cancel()
		require.ErrorIs(t, err, kv.ErrVacant)
	}
	var opened atomic.Int64
	backend := kvtest.Backend{TTL: 2 * time.Second, Open: func(testing.TB) kv.Store {
		return stores[opened.Add(1)%int64(len(stores))]
	}}
	var crowd sync.WaitGroup
	seats := make(chan struct{}, 16)
	for _, c := range kvtest.Cases() {
		if !c.Fits(backend) || alone(c.Name) || contended(c.Name) {
			continue
		}
		crowd.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			t.Run(c.Name, func(t *testing.T) { c.Run(t, backend) })
		})
	}
	crowd.Wait()
	for _, c := range kvtest.Cases() { // they take all there is of a processor
		if contended(c.Name) {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, backend) })
		}
	}
}

// alone reports whether a case counts what the whole process does: those are for fake
// time as well.
func alone(name string) bool {
	return strings.Contains(name, "goroutines behind") || strings.Contains(name, "is idle")
}
