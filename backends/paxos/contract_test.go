package paxoskv_test

import (
	"testing"
	"testing/synctest"
	"time"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// Three members keep the contract, but for the cases in which they contend for one safe
// without a pause: see contended.
func TestThreeMembersKeepTheContract(t *testing.T) {
	for _, c := range kvtest.Cases() {
		b := kvtest.Backend{Open: func(testing.TB) kv.Store { return nil }}
		if !c.Fits(b) || contended(c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t, 3, paxoskv.Options{MaxTTL: 2 * time.Minute})
				opened := 0
				c.Run(t, kvtest.Backend{
					Open: func(testing.TB) kv.Store {
						opened++
						return cl.members[opened%3]
					},
					Requests: cl.net.requests.Load,
				})
			})
		})
	}
}
