package rediskv_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// client returns a client with these options.
func (b *bench) client(options *redis.Options) *redis.Client {
	client := redis.NewClient(options)
	b.Cleanup(func() { require.NoError(b, client.Close()) })
	return client
}

// each calls every operation of a store with a context of its own.
func (b *bench) each(store *rediskv.Store, name string, rec kv.Record, check func(op string, call func(context.Context) error)) {
	vacant, next := b.name(), b.signed(time.Minute)
	check("create", func(ctx context.Context) error { _, err := store.Create(ctx, vacant, next); return err })
	check("get", func(ctx context.Context) error { _, err := store.Get(ctx, name); return err })
	check("refresh", func(ctx context.Context) error { _, err := store.Refresh(ctx, name, rec); return err })
	check("swap", func(ctx context.Context) error { _, err := store.Swap(ctx, name, rec, next); return err })
	check("delete", func(ctx context.Context) error { return store.Delete(ctx, name, rec) })
	check("watch", func(ctx context.Context) error {
		for _, err := range store.Watch(ctx, name) {
			if err != nil {
				return err
			}
		}
		return errors.New("the watch ended without saying why")
	})
	check("diagnose", func(ctx context.Context) error { _, err := store.Diagnose(ctx); return err })
}

// A server that has been stopped accepts connections and answers nothing.
func TestAHangingServerHoldsNoCallBack(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	rec := b.create(name, time.Hour)
	for _, heeds := range []bool{true, false} {
		client := b.client(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: heeds, ReadTimeout: 6 * time.Second})
		store := rediskv.New(client, nil)
		_, err := store.Get(b.ctx, name)
		require.NoError(t, err)
		seen, stop := b.watch(store, name)
		require.NoError(t, b.next(seen, slack).err)
		b.subscribed(2)
		b.settled()
		before := runtime.NumGoroutine()
		server.Pause()
		const limit = 200 * time.Millisecond
		b.each(store, name, rec, func(op string, call func(context.Context) error) {
			ctx, cancel := context.WithTimeout(b.ctx, limit)
			start := time.Now()
			err := call(ctx)
			took := time.Since(start)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
			b.unknown(err)
			require.Less(t, took, 5*time.Second, "%s at its deadline", op)

			why := errors.New("the caller thought better of it")
			ctx, cancelCause := context.WithCancelCause(b.ctx)
			timer := time.AfterFunc(limit, func() { cancelCause(why) })
			start = time.Now()
			err = call(ctx)
			t.Logf("ContextTimeoutEnabled %v: %s took %v at a deadline, %v when cancelled, of %v",
				heeds, op, took, time.Since(start), limit)
			timer.Stop()
			require.ErrorIs(t, err, why, op)
			b.unknown(err)
			require.Less(t, time.Since(start), 5*time.Second, "%s when cancelled", op)
		})
		start := time.Now()
		stop()
		require.Less(t, time.Since(start), 5*time.Second, "the end of a watch that waits")
		require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before }, slack, 10*time.Millisecond,
			"what the abandoned requests left behind ends with the client's timeouts")
		t.Logf("ContextTimeoutEnabled %v: nothing is left %v after the last call", heeds, time.Since(start))
		server.Continue()
		// What was sent may have been carried out meanwhile, as the errors said.
		if _, err := b.store.Refresh(b.ctx, name, rec); err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			require.NoError(t, b.other.Del(b.ctx, name).Err())
			rec = b.create(name, time.Hour)
		}
	}
}

func TestARequestWhoseDeadlineHasPassedLeavesNothingBehind(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	client := b.client(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Hour})
	store := rediskv.New(client, nil)
	name := b.name()
	_, err := store.Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
	before := runtime.NumGoroutine()
	server.Pause()
	defer server.Continue()
	for range 20 {
		ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
		_, err := store.Create(ctx, name, b.signed(time.Hour))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, slack, 10*time.Millisecond)
}

func TestACreateWhoseReplyWasLostIsFoundByItsSignature(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	proxy := testenv.NewProxy(t, testenv.Redis(t))
	store := rediskv.New(dial(t, proxy.Addr()), nil)
	name, mine := b.name(), b.signed(time.Minute)
	b.create(b.name(), time.Minute) // the server has to know the script
	_, err := store.Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)

	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	proxy.HoldReplies()
	go func() {
		_ = proxy.AwaitHeld(ctx)
		cancel()
	}()
	_, err = store.Create(ctx, name, mine)
	b.unknown(err)
	proxy.Heal()

	rec := b.get(name)
	require.Equal(t, mine.Signature, rec.Signature)
	_, err = store.Create(b.ctx, name, mine)
	require.ErrorIs(t, err, kv.ErrHeld)
	fresh, err := store.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, fresh)
}

// losesReply makes a call whose connection breaks once the server has carried it out. Another is to be had.
func (b *bench) losesReply(proxy *testenv.Proxy, call func() error) {
	b.Helper()
	proxy.HoldReplies()
	held := make(chan error, 1)
	go func() {
		err := proxy.AwaitHeld(b.ctx)
		proxy.Cut()
		proxy.Heal()
		held <- err
	}()
	b.unknown(call())
	require.NoError(b, <-held, "nobody has called the server")
}

// A client with its default retries sends a command again when the reply is
// lost, and would report that the second one was refused.
func TestAWriteWhoseReplyWasLostIsNotSentAgain(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	proxy := testenv.NewProxy(t, server.Addr())
	store := rediskv.New(b.client(&redis.Options{Addr: proxy.Addr(), MaxRetries: 3, ReadTimeout: time.Minute}), nil)
	lose := func(call func() error) {
		t.Helper()
		_, err := store.Get(b.ctx, b.name())
		require.ErrorIs(t, err, kv.ErrVacant)
		before := b.calls()
		b.losesReply(proxy, call)
		require.Equal(t, 1, b.calls()-before, "requests that reached the server")
	}
	name := b.name()
	// The server has to know the scripts, so that each call is one request.
	rec := b.create(b.name(), time.Minute)
	_, err := b.store.Swap(b.ctx, b.name(), rec, b.signed(time.Minute))
	require.ErrorIs(t, err, kv.ErrStale)
	require.ErrorIs(t, b.store.Delete(b.ctx, name, rec), kv.ErrStale)
	_, err = b.store.Refresh(b.ctx, name, rec)
	require.ErrorIs(t, err, kv.ErrStale)

	lose(func() error { _, err := store.Create(b.ctx, name, b.signed(time.Minute)); return err })
	rec = b.get(name)
	lose(func() error { _, err := store.Refresh(b.ctx, name, rec); return err })
	require.Equal(t, rec, b.get(name))
	next := b.signed(time.Minute)
	lose(func() error { _, err := store.Swap(b.ctx, name, rec, next); return err })
	rec = b.get(name)
	require.Equal(t, next.Signature, rec.Signature)
	lose(func() error { return store.Delete(b.ctx, name, rec) })
	_, err = b.store.Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

func TestAServerThatRestartedServesAtOnce(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	rec := b.create(name, time.Hour)
	server.Restart()
	_, err := b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err, "an idle connection that the server closed is not used")
	require.NoError(t, b.other.ScriptFlush(b.ctx).Err())
	_, err = b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err, "a script that the server has forgotten is sent in full")
}

// Whatever the server says that is not the scripts' own answer leaves the
// outcome open.
func TestWhatAServerRefusesIsNoDefiniteOutcome(t *testing.T) {
	all := []string{"create", "get", "refresh", "swap", "delete", "watch"}
	config := func(setting, value string) func(*bench) {
		return func(b *bench) { require.NoError(b, b.other.ConfigSet(b.ctx, setting, value).Err()) }
	}
	for state, c := range map[string]struct {
		refused []string // operations
		says    string   // a pattern
		spoil   func(*bench)
	}{
		"a replica": {all, "READONLY", func(b *bench) {
			host, port, err := net.SplitHostPort(testenv.StartRedis(b).Addr())
			require.NoError(b, err)
			require.NoError(b, b.other.Do(b.ctx, "replicaof", host, port).Err())
		}},
		"a primary without its replicas": {all, "NOREPLICAS", config("min-replicas-to-write", "1")},
		"no memory":                      {[]string{"create", "swap"}, "OOM", config("maxmemory", "1")},
		"no right to run scripts": {all, "NOPERM", func(b *bench) {
			require.NoError(b, b.other.Do(b.ctx, "acl", "setuser", "default", "-evalsha").Err())
		}},
		"no right to what scripts do": {[]string{"create", "swap"}, "can't run this command|NOPERM", func(b *bench) {
			require.NoError(b, b.other.Do(b.ctx, "acl", "setuser", "default", "-set").Err())
		}},
		"too many clients": {all, "max number of clients|broken pipe|reset by peer|EOF", func(b *bench) {
			require.NoError(b, b.other.ConfigSet(b.ctx, "maxclients", "1").Err())
			require.NoError(b, b.other.ClientKillByFilter(b.ctx, "TYPE", "normal", "SKIPME", "yes").Err())
		}},
		"a script that does not end": {all, "BUSY", func(b *bench) {
			require.NoError(b, b.other.ConfigSet(b.ctx, "busy-reply-threshold", "1").Err())
			client := b.client(&redis.Options{Addr: b.addr, MaxRetries: -1, ReadTimeout: time.Minute})
			var running sync.WaitGroup
			running.Go(func() { client.Eval(b.ctx, "while true do end", nil) })
			b.Cleanup(func() {
				b.other.ScriptKill(context.Background())
				running.Wait()
			})
			require.Eventually(b, func() bool {
				err := b.other.Get(b.ctx, "any").Err()
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			}, time.Minute, 10*time.Millisecond, "the script runs")
		}},
		"a node of a cluster that is down": {all, "CLUSTERDOWN", func(b *bench) {
			*b = *newBench(b.T, testenv.StartRedisCluster(b, 1, 0).Addrs()...)
			require.NoError(b, b.other.ClusterDelSlotsRange(b.ctx, 0, 16383).Err())
		}},
	} {
		t.Run(state, func(t *testing.T) {
			server := testenv.StartRedis(t)
			b := newBench(t, server.Addr())
			name := b.name()
			rec := b.create(name, time.Hour)
			c.spoil(b)
			b.each(b.store, name, rec, func(op string, call func(context.Context) error) {
				for _, refused := range c.refused {
					if op == refused {
						ctx, cancel := context.WithTimeout(b.ctx, slack)
						err := call(ctx)
						cancel()
						require.Error(t, err, op)
						require.Regexp(t, c.says, err.Error(), op)
						b.unknown(err)
					}
				}
			})
		})
	}
}

func TestWithoutMemoryALeaderStaysAndCanResign(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	rec := b.create(name, time.Minute)
	require.NoError(t, b.other.ConfigSet(b.ctx, "maxmemory", "1").Err())
	_, err := b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, b.get(name))
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
}

func TestErrorsDoNotTellThePassword(t *testing.T) {
	t.Parallel() // it mostly waits
	const secret = "correct-horse"
	server := testenv.StartRedis(t, "--requirepass", secret)
	b := &bench{T: t, ctx: t.Context()}
	tell := func(password string) {
		t.Helper()
		client := b.client(&redis.Options{Addr: server.Addr(), Password: password})
		b.each(rediskv.New(client, nil), "name", b.signed(time.Minute), func(op string, call func(context.Context) error) {
			ctx, cancel := context.WithTimeout(b.ctx, slack)
			defer cancel()
			err := call(ctx)
			b.unknown(err)
			require.NotContains(t, err.Error(), "horse", op)
		})
	}
	tell("")
	tell("wrong-horse")
	server.Kill()
	tell(secret)
}

func TestARingIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": testenv.Redis(t)}})
	t.Cleanup(func() { require.NoError(t, ring.Close()) })
	b := &bench{T: t, ctx: t.Context()}
	b.each(rediskv.New(ring, nil), "name", b.signed(time.Minute), func(op string, call func(context.Context) error) {
		require.ErrorIs(t, call(b.ctx), kv.ErrInvalid, op)
	})
}
