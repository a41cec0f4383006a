package etcdkv_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// everyKind returns a store of each kind that uses the client.
func everyKind(client *clientv3.Client) map[string]kv.Store {
	kinds := map[string]kv.Store{"observed": observedBy(client)}
	for _, options := range everyLayout() {
		options.Prefix = prefix
		kinds[title(options)] = options.with(client)
	}
	return kinds
}

// overheard returns the configuration of a client, and what that logs that deserves
// attention.
func overheard(addr string) (clientv3.Config, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	return clientv3.Config{Endpoints: []string{addr}, Logger: zap.New(core)}, logs
}

func newClient(t testing.TB, config clientv3.Config) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// A watch ends in two ways that are no trouble, and the client is asked for nothing
// that would have to be called off.
func TestAWatchThatEndsGivesTheClientNothingToWarnOf(t *testing.T) {
	config, logs := overheard(testenv.Etcd(t))
	for kind, store := range everyKind(newClient(t, config)) {
		t.Run(kind, func(t *testing.T) {
			name, rec := held(t, store)
			for range 20 {
				ctx, cancel := context.WithCancel(within(t, patience))
				defer cancel()
				for got, err := range store.Watch(ctx, name) {
					if err == nil {
						require.Equal(t, rec, got)
					} else {
						require.ErrorIs(t, err, context.Canceled)
					}
					cancel()
				}
				for range store.Watch(t.Context(), name) {
					break
				}
			}
			require.Empty(t, logs.TakeAll())
		})
	}
}

// A few candidates lead one after the other, and end while they lead or wait. Each
// calls off what it has asked when the answer is of no use any more.
func TestAQuietClientWarnsOfNothingInAnOrdinaryElection(t *testing.T) {
	t.Parallel() // it mostly waits
	config, logs := overheard(testenv.Etcd(t))
	for kind, store := range everyKind(newClient(t, etcdkv.Quiet(config))) {
		t.Run(kind, func(t *testing.T) {
			name, leads := rand.Text(), make(chan context.CancelFunc, 3)
			var crowd sync.WaitGroup
			for range 3 {
				ctx, stop := context.WithCancel(within(t, patience))
				candidate, err := election.New(store, name, &election.Options{TTL: ample})
				require.NoError(t, err)
				crowd.Go(func() {
					err := candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
						leads <- stop
						<-ctx.Done()
						return nil
					})
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond) // the others have come to wait
			for range 3 {
				(<-leads)()
			}
			crowd.Wait()
			require.Empty(t, logs.TakeAll())
		})
	}
}

// A request to a server that hangs is called off, by its caller, by its deadline and
// by what stands in between.
func TestAQuietClientLeavesOutWhatItsCallerCalledOffAlone(t *testing.T) {
	proxy := testenv.NewProxy(t, testenv.Etcd(t))
	config, logs := overheard(proxy.Addr())
	var answer error
	config.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if answer != nil {
				return answer
			}
			return invoke(ctx, method, req, reply, conn, opts...)
		})}
	config.MaxUnaryRetries = 1
	loud, silent := newClient(t, config), newClient(t, etcdkv.Quiet(config))
	_, err := silent.Get(within(t, patience), "key")
	require.NoError(t, err)
	_, err = loud.Get(within(t, patience), "key")
	require.NoError(t, err)

	proxy.BlackHole()
	for _, client := range []*clientv3.Client{loud, silent} {
		ctx, cancel := context.WithCancel(within(t, patience))
		timer := time.AfterFunc(50*time.Millisecond, cancel)
		defer timer.Stop()
		_, err := client.Get(ctx, "key")
		require.ErrorIs(t, err, context.Canceled)
		warnings := logs.TakeAll()
		if client == loud {
			require.Len(t, warnings, 1)
			require.Equal(t, "retrying of unary invoker failed", warnings[0].Message)
		} else {
			require.Empty(t, warnings)
		}
	}

	_, err = silent.Get(within(t, 50*time.Millisecond), "key")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, logs.TakeAll(), 1, "a deadline that has passed")

	answer = status.Error(codes.Canceled, "context canceled")
	_, err = silent.Get(within(t, patience), "key")
	require.Error(t, err)
	require.Len(t, logs.TakeAll(), 1, "a cancellation that was answered")
}

// The client's own errors are what they are without Quiet.
func TestAQuietClientTakesTheConfigurationAsItIs(t *testing.T) {
	_, err := clientv3.New(etcdkv.Quiet(clientv3.Config{}))
	require.ErrorIs(t, err, clientv3.ErrNoAvailableEndpoints)
	broken := zap.NewProductionConfig()
	broken.OutputPaths = []string{"no-such-scheme://"}
	_, err = clientv3.New(etcdkv.Quiet(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}, LogConfig: &broken}))
	require.ErrorContains(t, err, "no-such-scheme")

	path := filepath.Join(t.TempDir(), "log")
	file := zap.NewProductionConfig()
	file.OutputPaths = []string{path}
	silent := newClient(t, etcdkv.Quiet(clientv3.Config{Endpoints: []string{testenv.Etcd(t)}, LogConfig: &file}))
	_, err = silent.Get(within(t, time.Nanosecond), "key")
	require.Error(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "retrying of unary invoker failed")
}
