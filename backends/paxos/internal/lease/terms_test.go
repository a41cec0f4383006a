package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

func TestALifeOutlastsATTLWhateverTheClocksDo(t *testing.T) {
	for _, drift := range []int{0, 1, 5, 100} {
		for _, ttl := range []time.Duration{1, 999, time.Millisecond + 1, time.Second, time.Minute, 24 * time.Hour} {
			terms := lease.Terms{Drift: drift, MaxTTL: ttl, Round: ttl}
			// In thousandths: the owner's clock is slow, the acceptor's fast.
			trusted := int64(ttl) * 1000 / int64(1000-drift)
			kept := int64(terms.Life(ttl)) * 1000 / int64(1000+drift)
			require.GreaterOrEqual(t, kept, trusted, "TTL %v, drift %d", ttl, drift)
			require.LessOrEqual(t, kept, trusted+trusted/100000+2, "not longer than needed")
			silent := int64(terms.Quarantine()) * 1000 / int64(1000+drift)
			require.GreaterOrEqual(t, silent, int64(terms.Life(ttl)+ttl), "quarantine")
		}
	}
}

func TestTermsThatCannotBeAreRefused(t *testing.T) {
	good := lease.Terms{Cluster: "c", Members: []lease.MemberID{"a", "b", "c"}, MaxTTL: time.Minute, Round: time.Second, Drift: 5}
	require.NoError(t, good.Check())
	for want, change := range map[string]func(*lease.Terms){
		"a name":        func(x *lease.Terms) { x.Cluster = "" },
		"members":       func(x *lease.Terms) { x.Members = nil },
		"sorted":        func(x *lease.Terms) { x.Members = []lease.MemberID{"b", "a"} },
		"twice":         func(x *lease.Terms) { x.Members = []lease.MemberID{"a", "a"} },
		"empty id":      func(x *lease.Terms) { x.Members = []lease.MemberID{"", "a"} },
		"longest TTL":   func(x *lease.Terms) { x.MaxTTL = 0 },
		"at most 24h":   func(x *lease.Terms) { x.MaxTTL = 25 * time.Hour },
		"round limit":   func(x *lease.Terms) { x.Round = 2 * time.Minute },
		"drift -1‰":     func(x *lease.Terms) { x.Drift = -1 },
		"drift 101‰":    func(x *lease.Terms) { x.Drift = 101 },
		"no members":    func(x *lease.Terms) { x.Members = []lease.MemberID{} },
		"16 members":    func(x *lease.Terms) { x.Members = make([]lease.MemberID, 16) },
		"limit -1ns":    func(x *lease.Terms) { x.Round = -1 },
		"longest TTL -": func(x *lease.Terms) { x.MaxTTL = -1 },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.Check(), want)
	}
}
