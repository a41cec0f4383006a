package paxoskv_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// Three members keep the contract, and where members contend for one safe also if
// messages take their time and overtake each other.
func TestThreeMembersKeepTheContract(t *testing.T) {
	for _, slow := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		for _, c := range kvtest.Cases() {
			if c.Fits(kvtest.Backend{Open: func(testing.TB) kv.Store { return nil }}) && (slow == 0 || contended(c.Name)) {
				t.Run(fmt.Sprintf("%s, %v", c.Name, slow), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { keepsTheContract(t, c, slow) })
				})
			}
		}
	}
}

// keepsTheContract holds a new cluster to a case, each of whose messages takes up to so
// long.
func keepsTheContract(t *testing.T, c kvtest.Case, slow time.Duration) {
	cl := newCluster(t, 3, paxoskv.Options{MaxTTL: 10 * time.Minute})
	if slow > 0 {
		cl.net.slow(func() time.Duration { return rand.N(slow) })
	}
	opened := 0
	c.Run(t, kvtest.Backend{
		Open: func(testing.TB) kv.Store {
			opened++
			return cl.members[opened%3]
		},
		Requests: cl.net.requests.Load,
	})
}

// contended reports whether a case has members contend for one safe without a pause.
func contended(name string) bool {
	return slices.Contains([]string{
		"one of many creates wins", "one of many swaps at a revision wins", "one of many wins a safe whose record has expired",
		"an owner and a usurper are never both right", "owners that come and go hold the safe one at a time",
	}, name)
}
