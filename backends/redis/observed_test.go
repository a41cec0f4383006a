package rediskv_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/observer/observertest"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// observed returns a store whose observers judge expiry.
func observed(c redis.UniversalClient) kv.Store {
	return rediskv.NewObserved(c, &rediskv.ObservedOptions{Prefix: prefix})
}

func TestWhereObserversJudgeASingleServerKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, backendOf(t, observed, testenv.Redis(t)))
}

func TestObserversJudge(t *testing.T) {
	observertest.Run(t, func(t testing.TB) kv.Store { return observed(dial(t, testenv.Redis(t))) })
}

func TestWhereObserversJudgeAClusterKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // it mostly waits
	essentials(t, backendOf(t, observed, testenv.StartRedisCluster(t, 3, 0).Addrs()...))
}

func TestWhereObserversJudgeSentinelsKeepTheContract(t *testing.T) {
	t.Parallel() // it mostly waits
	nodes := testenv.StartRedisSentinel(t, 1)
	nodes.Patience(time.Minute)
	sentinels := nodes.SentinelAddrs()
	client := func(t testing.TB) redis.UniversalClient {
		c := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: testenv.RedisPrimaryName, SentinelAddrs: sentinels, ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	others := operator{client(t), prefix}
	essentials(t, kvtest.Backend{
		Open: func(t testing.TB) kv.Store { return observed(client(t)) },
		Put:  others.put, Remove: others.remove,
	})
}

// essentials runs the cases about who has a safe: what differs from one server is
// where the scripts find their keys.
func essentials(t *testing.T, b kvtest.Backend) {
	t.Helper()
	var crowd sync.WaitGroup
	n := 0
	for _, c := range kvtest.Cases() {
		for _, about := range []string{"one of many", "usurper", "tokens grow", "a takeover", "an expired record", "a watch alone", "a foreign record cannot"} {
			if strings.Contains(c.Name, about) {
				n++
				crowd.Go(func() { t.Run(c.Name, func(t *testing.T) { c.Run(t, b) }) })
			}
		}
	}
	crowd.Wait()
	require.GreaterOrEqual(t, n, 15)
}

// The TTL is so long that the leader would have to be kept from its refreshes for
// ten seconds to lose its term by itself.
func TestWhereObserversJudgeTheServersWallClockEndsNoTerm(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedisWithClock(t)
	b := newBench(t, server.Addr())
	name := b.name()
	ctx, stop := context.WithCancel(b.ctx)
	var began atomic.Int32
	terms := make(chan *election.Term, 100)
	var crowd sync.WaitGroup
	for range 3 {
		store := rediskv.NewObserved(dial(t, server.Addr()), nil)
		candidate, err := election.New(store, name, &election.Options{TTL: 15 * time.Second})
		require.NoError(t, err)
		crowd.Go(func() {
			err := candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
				began.Add(1)
				terms <- term
				<-ctx.Done()
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	t.Cleanup(crowd.Wait)
	t.Cleanup(stop)
	term := <-terms
	for range 2 {
		for _, jump := range []time.Duration{5 * time.Hour, -48 * time.Hour, time.Minute, 43*time.Hour - time.Minute} {
			server.JumpClock(jump)
			time.Sleep(600 * time.Millisecond) // a look of each watch, and now and then a refresh
			require.NoError(t, term.Err(), "after a jump of %v", jump)
			require.Equal(t, int32(1), began.Load(), "after a jump of %v", jump)
		}
	}
	require.NoError(t, term.Resign(b.ctx))
	require.Greater(t, (<-terms).Token(), term.Token())
}

func TestNeitherWayToJudgeTouchesTheOthersRecords(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBench(t, testenv.Redis(t))
	o := rediskv.NewObserved(b.other, nil)
	const short = 500 * time.Millisecond
	both := []struct {
		what         string
		owner, other kv.Store
	}{
		{"observers'", o, b.store},
		{"the server's", b.store, rediskv.NewObserved(b.other, nil)},
	}
	for _, c := range both {
		var name string
		var rec kv.Record
		ttl := short
		for ; ; ttl *= 2 {
			var err error
			name = b.name()
			rec, err = c.owner.Create(b.ctx, name, b.signed(ttl))
			require.NoError(t, err)
			require.NoError(t, b.other.Persist(b.ctx, name).Err()) // the server would end its own
			if b.left(name) == -time.Nanosecond {
				break
			}
			require.Less(t, ttl, 10*time.Second, "this machine is too busy to keep a record before it fades")
		}
		text := b.other.Get(b.ctx, name).Val()
		for begun := time.Now(); time.Since(begun) < 4*ttl; time.Sleep(short / 10) {
			seen, err := c.other.Get(b.ctx, name)
			require.NoError(t, err, c.what)
			require.True(t, seen.Foreign, c.what)
			require.True(t, seen.Permanent, c.what)
			require.Equal(t, text, seen.Value, c.what)
			_, err = c.other.Create(b.ctx, name, b.signed(short))
			require.ErrorIs(t, err, kv.ErrHeld, c.what)
			// Even who says to be the owner.
			_, err = c.other.Refresh(b.ctx, name, rec)
			require.ErrorIs(t, err, kv.ErrStale, c.what)
			_, err = c.other.Swap(b.ctx, name, rec, b.signed(short))
			require.ErrorIs(t, err, kv.ErrStale, c.what)
			require.ErrorIs(t, c.other.Delete(b.ctx, name, rec), kv.ErrStale, c.what)
			require.Equal(t, text, b.other.Get(b.ctx, name).Val(), c.what)
			require.Equal(t, -time.Nanosecond, b.left(name), c.what)
		}
	}
}

// One is judged dead by those who have watched it, and still a lock to the others.
func TestARecordThatObserversJudgedDeadIsStillALockToTheOthers(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	o := rediskv.NewObserved(b.other, nil)
	name := b.name()
	dead, err := o.Create(b.ctx, name, b.signed(500*time.Millisecond))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := o.Get(b.ctx, name)
		return errors.Is(err, kv.ErrVacant)
	}, slack, 10*time.Millisecond)
	_, err = b.store.Create(b.ctx, name, b.signed(time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld)
	next, err := o.Create(b.ctx, name, b.signed(time.Minute))
	require.NoError(t, err)
	require.Greater(t, next.Token, dead.Token)
}

func TestWhereObserversJudgeAScriptIsCarriedOutForTheOwnerAlone(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	o := rediskv.NewObserved(b.other, nil)
	name := b.name()
	write := func(rec kv.Record, value string) error {
		_, err := o.Eval(b.ctx, name, rec, set, []string{data(name)}, value)
		return err
	}
	rec, err := o.Create(b.ctx, name, b.signed(time.Minute))
	require.NoError(t, err)
	require.NoError(t, write(rec, "one"))
	_, err = o.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	require.NoError(t, write(rec, "two"), "a refresh does no harm")
	heir, err := o.Swap(b.ctx, name, rec, b.signed(time.Minute))
	require.NoError(t, err)
	require.ErrorIs(t, write(rec, "from the grave"), kv.ErrStale)
	require.NoError(t, write(heir, "three"))
	_, err = b.store.Eval(b.ctx, name, heir, set, []string{data(name)}, "by another way")
	require.ErrorIs(t, err, kv.ErrStale, "it is no record of that store's")
	require.Equal(t, "three", b.other.Get(b.ctx, data(name)).Val())
	require.NoError(t, o.Delete(b.ctx, name, heir))
	require.ErrorIs(t, write(heir, "from the grave"), kv.ErrStale)
}

func TestWhatObserversCannotJudgeIsRefused(t *testing.T) {
	o := rediskv.NewObserved(dial(t, "127.0.0.1:1"), nil)
	_, err := o.Lifetime(500*time.Millisecond - 1)
	require.EqualError(t, err, "rediskv: TTL 499.999999ms: want at least 500ms where observers judge: they have to see a refresh in time: kv: invalid request")
	life, err := o.Lifetime(500 * time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, life.Min)
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { require.NoError(t, ring.Close()) })
	for _, unfit := range []*rediskv.Observed{
		rediskv.NewObserved(nil, nil),
		rediskv.NewObserved(dial(t, "127.0.0.1:1"), &rediskv.ObservedOptions{Quarantine: -1}),
		rediskv.NewObserved(ring, nil),
	} {
		_, err := election.New(unfit, "jobs", nil)
		require.ErrorIs(t, err, kv.ErrInvalid)
		_, err = unfit.Diagnose(t.Context())
		require.ErrorIs(t, err, kv.ErrInvalid)
	}
}
