//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/testenv"
)

const (
	// peersTTL is what candidates of members have for a TTL, some times.
	peersTTL = time.Second
	// quarantinable is the longest TTL that members of a row's own grant: they wait
	// a little longer than that after a restart.
	quarantinable = 3 * peersTTL
)

// upTo are the usual terms of members that grant TTLs up to longest.
func upTo(longest time.Duration) terms {
	return terms{MaxTTL: longest, Round: time.Second, Drift: 5}
}

// startPeers starts three members that have never run before, and are told so or not.
// The clock of each may run fast by some thousandths.
func startPeers(t testing.TB, agreed terms, founding bool, fast ...int) *servers {
	t.Helper()
	return startPeersOf(t, make([]string, 3), agreed, founding, fast...)
}

// startPeersOf is startPeers with members that are these programs, or this one if the name
// is empty.
func startPeersOf(t testing.TB, programs []string, agreed terms, founding bool, fast ...int) *servers {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	agreed.Cert, agreed.Key, agreed.CA = testenv.NewAuthority(t).Files("127.0.0.1")
	nodes := testenv.StartPrograms(t, len(programs), "member", path, func(addrs []string, i int) []string {
		agreed.Members = addrs
		m := member{terms: agreed, ID: addrs[i], Founding: founding, Program: programs[i]}
		if i < len(fast) {
			m.Fast = fast[i]
		}
		return m.environment(t)
	})
	return &servers{
		nodes: nodes, addrs: agreed.Members, all: agreed.Members, peers: &agreed,
		leader: func(string) *testenv.Server { return nodes[0] }, // none leads among them
	}
}

// environment is what makes this program the member.
func (m member) environment(t testing.TB) []string {
	t.Helper()
	text, err := json.Marshal(m)
	require.NoError(t, err)
	return []string{memberVariable + "=" + string(text)}
}

// startMember starts a member beside those that there are, in a folder of its own,
// which ends with the test.
func startMember(t testing.TB, m member) (said *testenv.Speech) {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(path)
	cmd.Dir, cmd.Env = t.TempDir(), m.environment(t)
	said = &testenv.Speech{}
	cmd.Stderr = said
	testenv.Guard(t, cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		require.NotContains(t, said.String(), "DATA RACE")
		if t.Failed() {
			t.Logf("what was started as %s beside it said:\n%s", m.ID, said)
		}
	})
	return said
}

// paxos returns a client of the members, which reaches each by its link.
func (p part) paxos() (*paxoskv.Store, error) {
	opts, err := p.Peers.options()
	if err != nil {
		return nil, err
	}
	opts.Backstop = p.Backstop
	if opts.Backstop == 0 {
		opts.Backstop = 200 * time.Millisecond // so that a release is seen in time
	}
	opts.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.link(addr))
	}
	return paxoskv.New(&opts)
}

// silence is for how long members that were restarted grant nothing. Those that
// several rows use are not.
func (s *stage) silence() time.Duration {
	if s.peers == nil || !s.row.own {
		return 0
	}
	// So long is a TTL that lasts on the fastest clock what it lasts on the slowest,
	// twice, for what the terms say and a round.
	worst := s.peers.MaxTTL + s.peers.Round
	return worst + worst*time.Duration(5*s.peers.Drift)/1000
}
