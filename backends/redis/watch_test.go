package rediskv_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// slack is what a busy machine may add.
const slack = 30 * time.Second

// A sighting is what a watch yielded, and when.
type sighting struct {
	rec kv.Record
	err error
	at  time.Time
}

// watch reads a watch until the test ends, or stop is called.
func (b *bench) watch(store *rediskv.Store, name string) (seen <-chan sighting, stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	c := make(chan sighting, 100)
	var reader sync.WaitGroup
	reader.Go(func() {
		for rec, err := range store.Watch(ctx, name) {
			c <- sighting{rec, err, time.Now()}
		}
	})
	stop = func() {
		cancel()
		reader.Wait()
	}
	b.Cleanup(stop)
	return c, stop
}

// next returns what comes within d.
func (b *bench) next(seen <-chan sighting, d time.Duration) sighting {
	b.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case o := <-seen:
		return o
	case <-timer.C:
		require.FailNow(b, "the watch yields nothing", "within %v", d)
		panic("unreachable")
	}
}

func (b *bench) seesVacancy(seen <-chan sighting, within time.Duration) sighting {
	b.Helper()
	o := b.next(seen, within)
	require.ErrorIs(b, o.err, kv.ErrVacant, "%+v", o.rec)
	return o
}

// subscribed waits until n channels are subscribed to.
func (b *bench) subscribed(n int) {
	b.Helper()
	require.Eventually(b, func() bool {
		channels, err := b.other.PubSubChannels(b.ctx, "*").Result()
		return err == nil && len(channels) == n
	}, slack, 5*time.Millisecond, "want %d channels", n)
}

// calls returns how many scripts the server has run.
func (b *bench) calls() int {
	b.Helper()
	stats, err := b.other.Info(b.ctx, "commandstats").Result()
	require.NoError(b, err)
	for line := range strings.Lines(stats) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			n, err := strconv.Atoi(rest[:strings.Index(rest, ",")])
			require.NoError(b, err)
			return n
		}
	}
	return 0
}

// settled waits until the watches have looked at what their subscriptions told.
func (b *bench) settled() {
	b.Helper()
	require.Eventually(b, func() bool {
		before := b.calls()
		time.Sleep(200 * time.Millisecond)
		return b.calls() == before
	}, slack, time.Millisecond)
}

func TestAReleaseIsSeenAtOnce(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	rec := b.create(name, time.Hour)
	patient := rediskv.New(dial(t, server.Addr()), &rediskv.Options{Backstop: time.Hour})
	seen, _ := b.watch(patient, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	b.subscribed(2)
	b.settled()
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	b.seesVacancy(seen, slack)
}

func TestWithKeyspaceEventsWhatOthersDoIsSeenAtOnce(t *testing.T) {
	server := testenv.StartRedis(t, "--notify-keyspace-events", "Kg$xe")
	b := newBench(t, server.Addr())
	for _, db := range []int{0, 3} {
		options := &redis.Options{Addr: server.Addr(), DB: db}
		client, other := redis.NewClient(options), redis.NewClient(options)
		t.Cleanup(func() { require.NoError(t, errors.Join(client.Close(), other.Close())) })
		patient := rediskv.New(client, &rediskv.Options{Backstop: time.Hour})
		name := b.name()
		rec, err := patient.Create(b.ctx, name, b.signed(time.Hour))
		require.NoError(t, err)
		seen, stop := b.watch(patient, name)
		require.Equal(t, rec, b.next(seen, slack).rec)
		b.subscribed(2)
		b.settled()

		for try := 1; ; try++ { // a look that was still due may be counted once
			before := b.calls()
			for range 20 {
				_, err := patient.Refresh(b.ctx, name, rec)
				require.NoError(t, err)
			}
			b.settled()
			if b.calls()-before == 20 {
				break
			}
			require.Less(t, try, 5, "a refresh makes nobody look")
		}

		require.NoError(t, other.Del(b.ctx, name).Err())
		b.seesVacancy(seen, slack)
		require.NoError(t, other.Set(b.ctx, name, "somebody", time.Hour).Err())
		require.Equal(t, "somebody", b.next(seen, slack).rec.Value)
		stop()
		b.subscribed(0)
	}
}

func TestFlushAllIsSeenWithinTheBackstop(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBench(t, testenv.StartRedis(t).Addr())
	name := b.name()
	rec := b.create(name, time.Hour)
	seen, _ := b.watch(b.store, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	b.subscribed(2)
	b.settled()
	start := time.Now()
	require.NoError(t, b.other.FlushAll(b.ctx).Err())
	b.seesVacancy(seen, time.Second+slack)
	t.Logf("seen after %v", time.Since(start))
	require.Greater(t, b.create(name, time.Hour).Token, rec.Token)
}

func TestAnExpiryIsSeenThoughTheServerExpiresNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t, "--enable-debug-command", "yes")
	b := newBench(t, server.Addr())
	require.NoError(t, b.other.Do(b.ctx, "debug", "set-active-expire", "0").Err())
	patient := rediskv.New(dial(t, server.Addr()), &rediskv.Options{Backstop: time.Hour})
	for range 3 {
		name, start := b.name(), time.Now()
		rec := b.create(name, time.Second)
		created := time.Now()
		seen, stop := b.watch(patient, name)
		first := b.next(seen, slack)
		if time.Since(start) >= time.Second {
			stop()
			continue // it may have been gone
		}
		require.Equal(t, rec, first.rec)
		at := b.seesVacancy(seen, time.Second+slack).at
		require.GreaterOrEqual(t, at.Sub(start), time.Second, "not before its TTL has passed")
		t.Logf("seen %v after the expiry", at.Sub(created)-time.Second)
		stop()
	}
}

func TestAWatchSurvivesTheLossOfItsSubscription(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	patient := rediskv.New(dial(t, server.Addr()), &rediskv.Options{Backstop: time.Hour})
	name := b.name()
	seen, _ := b.watch(patient, name)
	b.seesVacancy(seen, slack)
	b.subscribed(2)
	for range 3 {
		rec := b.create(name, time.Hour)
		require.Equal(t, rec, b.next(seen, slack).rec)
		// What happens while nobody listens is found when the subscription stands
		// again: the hint of this release comes too early or goes nowhere.
		killed, err := b.other.ClientKillByFilter(b.ctx, "TYPE", "pubsub").Result()
		require.NoError(t, err)
		require.Positive(t, killed)
		require.NoError(t, b.store.Delete(b.ctx, name, rec))
		b.seesVacancy(seen, slack)
		b.subscribed(2)
		b.settled()
	}
}

// The connection that brings the hints goes silent and stays open, as behind a
// firewall that has forgotten it. All else works.
func TestAWatchNoticesThatItsSubscriptionIsDeaf(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	proxy := testenv.NewProxy(t, server.Addr())
	var detour atomic.Bool
	store := rediskv.New(b.client(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr := server.Addr()
		if detour.Load() {
			addr = proxy.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}), &rediskv.Options{Backstop: time.Hour})
	name := b.name()
	rec, err := store.Create(b.ctx, name, b.signed(time.Hour))
	require.NoError(t, err)
	detour.Store(true)
	seen, _ := b.watch(store, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	b.subscribed(2)
	b.settled()
	detour.Store(false)

	proxy.BlackHole()
	start := time.Now()
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	b.seesVacancy(seen, 20*time.Second+slack)
	t.Logf("seen after %v", time.Since(start))
}

func TestAWatchWorksWithoutTheRightToSubscribe(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	for channels, prompt := range map[string]bool{"&election:*": true, "resetchannels": false} {
		require.NoError(t, b.other.Do(b.ctx, "acl", "setuser", "watcher", "reset", "on", ">secret", "~*", "+@all", channels).Err())
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "watcher", Password: "secret"})
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		backstop := time.Second
		if prompt {
			backstop = time.Hour
		}
		limited := rediskv.New(client, &rediskv.Options{Backstop: backstop})
		name := b.name()
		seen, stop := b.watch(limited, name)
		b.seesVacancy(seen, slack)
		if prompt { // though keyspace events are refused
			require.Eventually(t, func() bool {
				return len(b.other.PubSubChannels(b.ctx, "*").Val()) == 1
			}, slack, 5*time.Millisecond)
			b.settled()
		}
		rec, err := limited.Create(b.ctx, name, b.signed(time.Hour))
		require.NoError(t, err, "a hint that is refused does not undo the write")
		require.Equal(t, rec, b.next(seen, slack).rec)
		require.NoError(t, limited.Delete(b.ctx, name, rec))
		b.seesVacancy(seen, slack)
		stop()
	}
}

func TestARefusedSubscriptionIsAskedForSeldom(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	require.NoError(t, b.other.Do(b.ctx, "acl", "setuser", "watcher", "reset", "on", ">secret", "~*", "+@all", "-subscribe").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "watcher", Password: "secret"})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	seen, _ := b.watch(rediskv.New(client, nil), b.name())
	b.seesVacancy(seen, slack)
	require.Eventually(t, func() bool {
		return strings.Contains(b.other.Info(b.ctx, "commandstats").Val(), "cmdstat_subscribe:")
	}, slack, 10*time.Millisecond, "it subscribes")
	time.Sleep(3 * time.Second)
	require.Less(t, b.refusals("subscribe"), 12, "pauses of 0.2, 0.4, 0.8, 1.6 s")
}

// refusals returns how often the server refused a command.
func (b *bench) refusals(command string) int {
	b.Helper()
	stats, err := b.other.Info(b.ctx, "commandstats").Result()
	require.NoError(b, err)
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_"+command+":") {
			_, rest, ok := strings.Cut(strings.TrimSpace(line), "rejected_calls=")
			require.True(b, ok, line)
			n, err := strconv.Atoi(rest[:strings.Index(rest, ",")])
			require.NoError(b, err)
			return n
		}
	}
	require.FailNow(b, "the command was never sent", command)
	panic("unreachable")
}

func TestAWatchDoesNotSpinWhateverItIsTold(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	seen, _ := b.watch(b.store, name)
	b.seesVacancy(seen, slack)
	b.subscribed(2)
	before, start := b.calls(), time.Now()
	told := 0
	for time.Since(start) < time.Second {
		hints, err := b.other.Pipelined(b.ctx, func(p redis.Pipeliner) error {
			for range 20 {
				p.Publish(b.ctx, "election:"+name, "look!")
			}
			return nil
		})
		require.NoError(t, err)
		told += len(hints)
	}
	looks := b.calls() - before
	t.Logf("%d looks at %d hints", looks, told)
	require.LessOrEqual(t, looks, int(time.Since(start)/(10*time.Millisecond))+2)
	require.Greater(t, told, 2*looks, "the test tells it more often than it may look")
}

// The owner is another process: what the waiters' own store refreshes, they need not look at.
func TestWaitersCostAboutALookForEachTTL(t *testing.T) {
	for ttl := time.Second; !waitersCostAboutALookForEachTTL(t, ttl); ttl *= 2 {
		require.Less(t, ttl, 10*time.Second, "this machine is too busy to refresh a record in time")
	}
}

// waitersCostAboutALookForEachTTL reports whether the record was refreshed in time.
func waitersCostAboutALookForEachTTL(t *testing.T, ttl time.Duration) bool {
	t.Helper()
	const waiters, lives = 20, 6
	b := newBench(t, testenv.StartRedis(t).Addr())
	name := b.name()
	last := time.Now()
	rec := b.create(name, ttl)
	for range waiters {
		seen, _ := b.watch(b.store, name)
		if first := b.next(seen, slack); time.Since(last) < ttl {
			require.Equal(t, rec, first.rec)
		}
	}
	b.subscribed(2)
	time.Sleep(ttl / 3)
	owner := rediskv.New(dial(t, b.addr), nil)
	before, refreshes := b.calls(), 0
	for start := time.Now(); time.Since(start) < lives*ttl; time.Sleep(ttl / 4) {
		began := time.Now()
		_, err := owner.Refresh(b.ctx, name, rec)
		if time.Since(last) > ttl*9/10 {
			return false
		}
		require.NoError(t, err)
		last = began
		refreshes++
	}
	looks := b.calls() - before - refreshes
	t.Logf("%d waiters looked %d times in %v at a TTL of %v", waiters, looks, lives*ttl, ttl)
	require.LessOrEqual(t, looks, waiters*lives*2)
	require.Positive(t, looks)
	return true
}

func TestTheLastWatchWaitsForTheEndOfTheSubscription(t *testing.T) {
	b := newBench(t, testenv.StartRedis(t).Addr())
	for range 20 {
		for range b.store.Watch(b.ctx, b.name()) {
			b.subscribed(2)
			break
		}
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		require.NotContains(t, string(stacks), "backends/redis.(*hub).connect")
	}
}

func TestManyWatchesShareFewConnectionsAndLeaveNothingBehind(t *testing.T) {
	const watches = 200
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 5, PoolTimeout: time.Minute})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	store := rediskv.New(client, nil)
	require.NoError(t, client.Ping(b.ctx).Err())
	require.NoError(t, b.other.Ping(b.ctx).Err())
	before := leak.Before()

	for range 3 {
		names, seen, stops := make([]string, watches), make([]<-chan sighting, watches), make([]func(), watches)
		for i := range watches {
			names[i] = b.name()
			seen[i], stops[i] = b.watch(store, names[i])
		}
		for i := range watches {
			b.seesVacancy(seen[i], slack)
		}
		b.subscribed(2 * watches)
		require.LessOrEqual(t, client.PoolStats().TotalConns, uint32(5))
		list, err := b.other.ClientList(b.ctx).Result()
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(list, fmt.Sprintf(" sub=%d ", 2*watches)), list)
		for i, name := range names {
			rec := b.create(name, time.Hour)
			require.Equal(t, rec, b.next(seen[i], slack).rec)
		}
		for i := range watches / 2 {
			stops[i]()
		}
		b.subscribed(2 * (watches - watches/2))
		for i := range watches {
			stops[i]()
		}
		b.subscribed(0)
	}
	before.Check(t)
}
