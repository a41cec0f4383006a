package etcdkv_test

import (
	"context"
	"crypto/rand"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// keysWith returns how many keys a server has that begin with the tests' prefix.
func keysWith(t testing.TB, client *clientv3.Client) int64 {
	t.Helper()
	resp, err := client.Get(within(t, patience), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	return resp.Count
}

// Callers give up at every moment of a create or join: before the lease is granted,
// between that and the write, while an answer is on its way. Whatever is left then,
// nobody keeps alive, and it is gone when its TTL is.
func TestACreateThatIsCalledOffLeavesNothingBeyondItsTTL(t *testing.T) {
	const calls, ttl = 100, time.Second
	each(t, everyLayout(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		proxy := testenv.NewProxy(t, server.Addr())
		client := dial(t, nil, server.Addr())
		var sent count
		store := openWith(t, &sent, options, proxy.Addr())
		_, err := store.Get(within(t, patience), "warm")
		require.ErrorIs(t, err, kv.ErrVacant)
		before := runtime.NumGoroutine()
		try := func(after time.Duration) error {
			ctx, cancel := context.WithCancel(within(t, patience))
			defer cancel()
			defer time.AfterFunc(after, cancel).Stop()
			rec := kv.Record{Signature: rand.Text(), TTL: ttl}
			if options.queue {
				_, err := store.(kv.Queue).Join(ctx, "line", rec)
				return err
			}
			_, err := store.Create(ctx, rand.Text(), rec)
			return err
		}
		start, failed := time.Now(), 0
		require.NoError(t, try(patience))
		late := time.Since(start) // what a call takes that nobody calls off
		for i := range calls {
			if try(late*time.Duration(i)/calls) != nil {
				failed++
			}
		}
		proxy.BlackHole()
		require.Error(t, try(50*time.Millisecond), "the request is lost")
		proxy.Heal()
		require.NotZero(t, failed)
		require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+10 }, patience, 10*time.Millisecond)
		quiet := sent.Load()
		require.Eventually(t, func() bool { return keysWith(t, client) == 0 && leases(t, client) == 0 },
			patience, 50*time.Millisecond, "what is left does not fade")
		require.Equal(t, quiet, sent.Load(), "somebody goes on with what was called off")
		t.Logf("%d of %d were called off in time", failed, calls)
	})
}
