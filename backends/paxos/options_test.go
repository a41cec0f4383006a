package paxoskv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	good := paxoskv.Options{
		ID: "127.0.0.1:7001", Peers: []string{"127.0.0.1:7002", "127.0.0.1:7003"}, Cluster: "c",
		TLS: testenv.NewAuthority(t).Config("127.0.0.1"),
	}
	for want, change := range map[string]func(*paxoskv.Options){
		"no TLS, no member":            func(o *paxoskv.Options) { o.TLS = nil },
		"the cluster needs a name":     func(o *paxoskv.Options) { o.Cluster = "" },
		"name has 256 bytes":           func(o *paxoskv.Options) { o.Cluster = strings.Repeat("c", 256) },
		"16 members":                   func(o *paxoskv.Options) { o.Peers = addrs(15) },
		"is not host:port":             func(o *paxoskv.Options) { o.ID = "here" },
		"is not host:port, with":       func(o *paxoskv.Options) { o.Peers = []string{"a:b"} },
		"no members":                   func(o *paxoskv.Options) { o.ID, o.Peers = "", nil },
		"twice":                        func(o *paxoskv.Options) { o.Peers = []string{"a:1", "A:1"} },
		"longest TTL":                  func(o *paxoskv.Options) { o.MaxTTL = -1 },
		"round limit":                  func(o *paxoskv.Options) { o.MaxTTL, o.Round = time.Second, 2*time.Second },
		"drift":                        func(o *paxoskv.Options) { o.Drift = 101 },
		"backstop":                     func(o *paxoskv.Options) { o.Backstop = -1 },
		"Founding needs a Dir":         func(o *paxoskv.Options) { o.Founding = true },
		"neither a Dir nor an address": func(o *paxoskv.Options) { o.ID, o.Dir = "", t.TempDir() },
	} {
		bad := good
		change(&bad)
		s, err := paxoskv.New(&bad)
		if err == nil {
			require.NoError(t, s.Close())
		}
		if want != "no TLS, no member" {
			require.ErrorContains(t, err, want)
		}
		require.ErrorContains(t, err, "paxoskv: ")
	}
}

// addrs are addresses of so many members.
func addrs(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("127.0.1.1:%d", 1+i))
	}
	return all
}

func TestAFoundingMemberWaitsInQuarantineFromItsSecondStartOn(t *testing.T) {
	opts := paxoskv.Options{
		ID: testenv.FreeAddr(t), Cluster: "c", TLS: testenv.NewAuthority(t).Config("127.0.0.1"),
		Dir: t.TempDir(), Founding: true,
	}
	for _, first := range []bool{true, false, false} {
		s, err := paxoskv.New(&opts)
		require.NoError(t, err)
		require.Equal(t, first, s.Quarantined() == 0)
		require.NoError(t, s.Close())
	}
}

// Somebody has taken the file away, as one does with a damaged one. The member has run
// before all the same.
func TestAFoundingMemberWaitsIfThereIsAnythingInItsFolder(t *testing.T) {
	opts := paxoskv.Options{
		ID: testenv.FreeAddr(t), Cluster: "c", TLS: testenv.NewAuthority(t).Config("127.0.0.1"),
		Dir: t.TempDir(), Founding: true,
	}
	require.NoError(t, os.WriteFile(filepath.Join(opts.Dir, "promised.damaged"), nil, 0o600))
	s, err := paxoskv.New(&opts)
	require.NoError(t, err)
	require.Positive(t, s.Quarantined())
	require.NoError(t, s.Close())
}

func TestATTLAboveTheMembersIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster(t, 1, paxoskv.Options{MaxTTL: 10 * time.Second}).members[0]
		for _, ttl := range []time.Duration{10*time.Second + 1, 99 * time.Millisecond} {
			_, err := s.Lifetime(ttl)
			require.ErrorIs(t, err, kv.ErrInvalid)
			require.ErrorContains(t, err, "100ms to 10s")
			_, err = s.Create(t.Context(), "s", kv.Record{Signature: "a", TTL: ttl})
			require.ErrorIs(t, err, kv.ErrInvalid)
		}
		life, err := s.Lifetime(10 * time.Second)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, life.Min)
	})
}

// Tokens grow though all members have forgotten everything but what is on disk.
func TestTokensGrowWhenAllMembersWereRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, paxoskv.Options{MaxTTL: time.Second})
		for i := range c.members {
			c.dirs = append(c.dirs, t.TempDir())
			require.NoError(t, c.members[i].Close())
			c.start(i)
		}
		time.Sleep(c.members[0].Quarantined())
		last := uint64(0)
		for range 3 {
			rec, err := c.members[1].Create(t.Context(), "s", kv.Record{Signature: "a", TTL: time.Second})
			require.NoError(t, err)
			require.Greater(t, rec.Token, last)
			// Far more than the milliseconds that pass meanwhile: a clock that was put
			// back would not matter.
			if last != 0 {
				require.Greater(t, rec.Token, last+8000)
			}
			last = rec.Token
			for i := range c.members {
				require.NoError(t, c.members[i].Close())
				c.start(i)
			}
			time.Sleep(c.members[0].Quarantined())
		}
	})
}

func TestAClosedStoreSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster(t, 1, paxoskv.Options{}).members[0]
		require.NoError(t, s.Close())
		_, err := s.Get(t.Context(), "s")
		require.ErrorContains(t, err, "closed")
		for _, err := range s.Watch(t.Context(), "s") {
			require.ErrorContains(t, err, "closed")
		}
		require.NoError(t, s.Close(), "twice")
	})
}

func TestAWatchWithoutAMajorityEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, paxoskv.Options{})
		c.mutes(func(i int) bool { return i == 0 })
		start := time.Now()
		for _, err := range c.members[0].Watch(t.Context(), "s") {
			require.ErrorContains(t, err, "no majority answers: ")
			require.NotErrorIs(t, err, kv.ErrVacant)
		}
		require.Less(t, time.Since(start), 10*time.Second)
	})
}
