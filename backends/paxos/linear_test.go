package paxoskv_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

// A crowd wants the same safes by way of three members, whose messages take their time
// and overtake each other, and some of which are lost.
func TestALossyClusterIsLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PAXOSKV_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("PAXOSKV_SEED=%d", seed)
	for i, c := range []struct {
		name string
		ttl  time.Duration
		loss int // in a hundred
		slow time.Duration
	}{
		{"records that stay", time.Minute, 0, time.Millisecond},
		{"records that stay, losses", time.Minute, 5, time.Millisecond},
		{"records that fade, losses", 100 * time.Millisecond, 5, time.Millisecond},
		{"records that fade before slow messages arrive", 100 * time.Millisecond, 1, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			var history []linear.Operation
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t, 3, paxoskv.Options{MaxTTL: time.Minute, Round: max(20*time.Millisecond, 4*c.slow)})
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				cl.net.slow(func() time.Duration { return time.Duration(random.IntN(int(c.slow))) })
				cl.net.lose(func(lease.MemberID, lease.MemberID) bool { return random.IntN(100) < c.loss })
				recorder := linear.NewRecorder()
				var clients []kv.Store
				for k := range 5 {
					clients = append(clients, recorder.Client(k, cl.members[k%3]))
				}
				linear.Crowd{
					Seed: seed + uint64(i), Ops: 1500, OpsPerSafe: 40, MaxUnknown: 3, TTL: c.ttl, Timeout: 100 * time.Millisecond,
					Prefix: fmt.Sprint("safe ", i, " "),
					Rest: func(context.Context, int, bool) {
						time.Sleep(time.Duration(rand.IntN(int(20 * time.Millisecond))))
					},
				}.Run(t.Context(), clients...)
				history = recorder.History()
			})
			verdict, err := linear.Check(history, time.Minute)
			require.NoError(t, err)
			t.Logf("%d operations on %d safes, %d unknown outcomes, %d of them surfaced", verdict.Operations, verdict.Safes, verdict.Unknown, verdict.Surfaced)
			if verdict.Result != linear.Kept {
				files, err := verdict.Save(os.TempDir())
				require.Fail(t, "not linearizable", "%v %q; see %q %v", verdict.Result, verdict.Names, files, err)
			}
		})
	}
}
