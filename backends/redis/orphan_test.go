package rediskv_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// atWork returns the stacks of the package's goroutines. Those of tests and of the
// client's connections do not count.
func atWork() (working []string) {
	stacks := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "backends/redis.") && !strings.Contains(stack, "testing.tRunner(") {
			working = append(working, stack)
		}
	}
	return working
}

// Callers give up at every moment of a create, and of a watch. Whatever is left then,
// nobody keeps alive: records are gone when their TTL is, subscriptions and goroutines
// at once, or with the client's timeouts where a server hangs.
func TestWhatIsCalledOffLeavesNothingBeyondItsTTL(t *testing.T) {
	const calls, ttl = 200, time.Second
	proxy := testenv.NewProxy(t, testenv.StartRedis(t).Addr())
	for what, options := range map[string]*rediskv.Options{"in one text": {Prefix: prefix}, "plain": {Prefix: prefix, Plain: true}} {
		t.Run(what, func(t *testing.T) {
			var (
				sent         requests
				start        time.Time
				failed, seen int
			)
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, ReadTimeout: 6 * time.Second})
			defer client.Close()
			sent.count(client)
			store, b := rediskv.New(client, options), newBench(t, proxy.Addr())
			try := func(after time.Duration, call func(ctx context.Context, name string) error) error {
				ctx, cancel := context.WithCancel(b.ctx)
				defer cancel()
				defer time.AfterFunc(after, cancel).Stop()
				return call(ctx, b.name())
			}
			create := func(ctx context.Context, name string) error {
				_, err := store.Create(ctx, name, b.signed(ttl))
				return err
			}
			watch := func(ctx context.Context, name string) (err error) {
				for _, err = range store.Watch(ctx, name) {
					if errors.Is(err, kv.ErrVacant) { // else it was called off, perhaps before it began
						require.NotEmpty(t, atWork())
						seen++
					}
				}
				return err
			}
			require.NoError(t, try(time.Minute, create)) // connects
			failed = 0
			late := 100 * time.Millisecond // what a call takes that nobody calls off, as far as the test has time for it
			for range 5 {
				start = time.Now()
				require.NoError(t, try(time.Minute, create))
				late = min(late, time.Since(start))
			}
			for i := range calls {
				if try(late*time.Duration(i)/calls, create) != nil {
					failed++
				}
				require.Error(t, try(5*late*time.Duration(i)/calls, watch))
			}
			proxy.BlackHole()
			require.Error(t, try(50*time.Millisecond, create), "the request is lost")
			require.Error(t, try(50*time.Millisecond, watch), "so is this one's")
			proxy.Heal()
			require.NotZero(t, failed)
			require.NotZero(t, seen)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Empty(c, atWork(), "goroutines that are left")
			}, slack, 10*time.Millisecond)
			quiet := sent.Load()
			other := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
			defer other.Close()
			require.Eventually(t, func() bool {
				channels, err := other.PubSubChannels(b.ctx, "*").Result()
				require.NoError(t, err)
				left := 0
				for _, key := range other.Keys(b.ctx, "*").Val() {
					if !strings.HasSuffix(key, ":election-fence") { // where tokens are remembered
						left++
					}
				}
				return len(channels) == 0 && left == 0
			}, slack, 50*time.Millisecond, "what is left does not fade")
			require.Equal(t, quiet, sent.Load(), "somebody goes on with what was called off")
			t.Logf("%d of %d were called off in time", failed, calls)
		})
	}
}
