//go:build unix

package linear_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// startMembers starts three members that have never run before.
func startMembers(t testing.TB) (agreed paxoskv.Options) {
	t.Helper()
	agreed = paxoskv.Options{
		Cluster: "linear", MaxTTL: ample, Round: timeout / 2,
		TLS: testenv.NewAuthority(t).Config("127.0.0.1"),
	}
	for range 3 {
		agreed.Peers = append(agreed.Peers, testenv.FreeAddr(t))
	}
	for _, addr := range agreed.Peers {
		opts := agreed
		opts.ID, opts.Dir, opts.Founding = addr, t.TempDir(), true
		member, err := paxoskv.New(&opts)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, member.Close()) })
	}
	return agreed
}

// unreached has no client reach one of the members. Killed, it would be back after
// the longest TTL, which no trial outlasts.
func unreached(wires []wire) fault {
	return fault{name: "member unreached", hold: time.Second, strike: func(random *rand.Rand) func() {
		member := random.IntN(3)
		for _, w := range wires {
			w[member].BlackHole()
		}
		return func() {
			for _, w := range wires {
				w[member].Heal()
			}
		}
	}}
}

func TestPaxosIsLinearizable(t *testing.T) {
	t.Parallel() // it often waits
	agreed, recorder := startMembers(t), linear.NewRecorder()
	wires := newWires(t, agreed.Peers...)
	try(t, recorder, subject{
		name:   "paxos",
		faults: append(wireFaults(wires), unreached(wires)),
		brief:  300 * time.Millisecond,
		open: func(client int) kv.Store {
			opts := agreed
			opts.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, wires[client][slices.Index(agreed.Peers, addr)].Addr())
			}
			store, err := paxoskv.New(&opts)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return recorder.Client(client, store)
		},
	})
}
