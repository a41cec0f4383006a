package etcdkv_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// calls calls every operation on a safe that rec holds, each with a context of
// its own, and returns their errors.
func calls(store kv.Store, name string, rec kv.Record, limit time.Duration) map[string]error {
	errs := make(map[string]error)
	call := func(op string, f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		errs[op] = f(ctx)
	}
	call("create", func(ctx context.Context) error {
		_, err := store.Create(ctx, name+"'", signed("v"))
		return err
	})
	call("publish", func(ctx context.Context) error {
		_, err := store.Swap(ctx, name, rec, kv.Record{Signature: rec.Signature})
		return err
	})
	call("take over", func(ctx context.Context) error {
		_, err := store.Swap(ctx, name, rec, signed("v"))
		return err
	})
	call("refresh", func(ctx context.Context) error {
		_, err := store.Refresh(ctx, name, rec)
		return err
	})
	call("delete", func(ctx context.Context) error { return store.Delete(ctx, name, rec) })
	call("get", func(ctx context.Context) error {
		_, err := store.Get(ctx, name)
		return err
	})
	call("watch", func(ctx context.Context) (last error) {
		for _, last = range store.Watch(ctx, name) {
		}
		return last
	})
	return errs
}

// requireOpen requires that the error is none of the definite outcomes.
func requireOpen(t testing.TB, op string, err error) {
	t.Helper()
	require.Error(t, err, op)
	for _, definite := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
		require.NotErrorIs(t, err, definite, op)
	}
}

func TestCallsReturnWhenTheirContextEndsThoughTheServerHangs(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	name, rec := held(t, store)
	fresh := open(t, nil, server.Addr()) // has no connection yet
	server.Pause()
	defer server.Continue()
	for _, s := range []kv.Store{store, fresh} {
		start := time.Now()
		errs := calls(s, name, rec, 300*time.Millisecond)
		require.Less(t, time.Since(start), patience)
		for op, err := range errs {
			requireOpen(t, op, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, op)
		}
	}
}

// A late context ends some time after its deadline, as any does on a busy machine.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

func TestADeadlineIsReportedThoughItsContextIsLate(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	ctx := late{within(t, 300*time.Millisecond), time.Now()}
	_, err := store.Refresh(ctx, name, rec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx = late{within(t, 300*time.Millisecond), time.Now()}
	for _, told := range kvtest.RefreshAll(t, ctx, store, []kv.Held{{Name: name, Record: rec}}) {
		require.ErrorIs(t, told.Err, context.DeadlineExceeded)
	}
}

func TestCallsReturnWhenTheirContextEndsThoughNoServerIsThere(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	name, rec := held(t, store)
	server.Kill()
	for op, err := range calls(store, name, rec, 300*time.Millisecond) {
		requireOpen(t, op, err)
		require.ErrorIs(t, err, context.DeadlineExceeded, op)
	}
}

// What was asked of a server that hangs is carried out later, or not; either
// way the store knows.
func TestARecordIsFoundAgainAfterAnOutage(t *testing.T) {
	server := testenv.StartEtcd(t)
	store := open(t, nil, server.Addr())
	name, rec := held(t, store)
	server.Pause()
	_, err := store.Swap(within(t, 300*time.Millisecond), name, rec, kv.Record{Signature: rec.Signature, Value: "published"})
	requireOpen(t, "publish", err)
	server.Continue()
	got, err := store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	require.True(t, got.Owns(rec))
}

// steadyCluster is a cluster that keeps its leader on a busy machine.
func steadyCluster(t testing.TB) *testenv.Cluster {
	t.Helper()
	return testenv.StartEtcdCluster(t, "--heartbeat-interval", "200", "--election-timeout", "2000")
}

func TestALeaderOfEtcdMayDie(t *testing.T) {
	t.Parallel() // it mostly waits
	cluster := steadyCluster(t)
	store := open(t, nil, cluster.Addrs()...)
	rec := signed("v")
	rec.TTL = 20 * time.Second
	rec, err := store.Create(within(t, patience), "safe", rec)
	require.NoError(t, err)
	w := watching(t, open(t, nil, cluster.Addrs()...), "safe")
	w.sees(rec)
	for range 2 {
		leader := cluster.Leader()
		w = w.through(func() {
			leader.Kill()
			require.Equal(t, rec, refreshPatiently(t, store, "safe", rec))
		})
		rec = publishPatiently(t, store, "safe", rec, rec.Value+"+")
		w.sees(rec)
		w = w.through(leader.Restart)
		rec = publishPatiently(t, store, "safe", rec, rec.Value+"+")
		w.sees(rec)
	}
	require.Eventually(t, func() bool {
		err := store.Delete(within(t, patience), "safe", rec)
		return err == nil || errors.Is(err, kv.ErrStale)
	}, patience, 10*time.Millisecond)
	require.True(t, w.next().vacant())
}

// heldPatiently puts a record into a new safe of a cluster, which may lose its leader meanwhile.
func heldPatiently(t testing.TB, store kv.Store) (string, kv.Record) {
	t.Helper()
	ctx := within(t, patience)
	for {
		name := rand.Text()
		rec, err := store.Create(ctx, name, signed("held"))
		if err == nil {
			return name, rec
		}
		require.NoError(t, context.Cause(ctx), "%v", err)
		time.Sleep(10 * time.Millisecond)
	}
}

// refreshPatiently refreshes a record within its TTL, as often as the outcome is open: the member that
// is asked may die meanwhile, or may say that there is no leader.
func refreshPatiently(t testing.TB, store kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	ctx := within(t, rec.TTL)
	for {
		got, err := store.Refresh(ctx, name, rec)
		if err == nil {
			return got
		}
		require.NotErrorIs(t, err, kv.ErrStale)
		require.NoError(t, context.Cause(ctx), "%v", err)
		time.Sleep(10 * time.Millisecond)
	}
}

// publishPatiently publishes a value within the record's TTL, as often as the outcome is open and the
// store does not hold the value: a cluster that has just lost its leader may lose the next one too.
func publishPatiently(t testing.TB, store kv.Store, name string, rec kv.Record, value string) kv.Record {
	t.Helper()
	ctx := within(t, rec.TTL)
	for {
		got, err := store.Swap(ctx, name, rec, kv.Record{Signature: rec.Signature, Value: value})
		if err == nil {
			return got
		}
		if now, unseen := store.Get(ctx, name); unseen == nil && now.Value == value {
			return now
		}
		require.NotErrorIs(t, err, kv.ErrStale)
		require.NoError(t, context.Cause(ctx), "%v", err)
		time.Sleep(10 * time.Millisecond)
	}
}

// A member without a leader ends the watches that require one. They begin anew
// when there is one.
func TestAWatchSurvivesALossOfTheMajority(t *testing.T) {
	t.Parallel() // it mostly waits
	cluster := testenv.StartEtcdCluster(t)
	alone, others := cluster.Nodes[0], cluster.Nodes[1:]
	store := open(t, nil, alone.Addr())
	name, rec := heldPatiently(t, store)
	w := watching(t, store, name)
	w.sees(rec)
	for _, node := range others {
		node.Pause()
	}
	time.Sleep(3 * time.Second) // several election timeouts
	for _, node := range others {
		node.Continue()
	}
	cluster.Leader()
	rec = publishPatiently(t, store, name, rec, "after")
	w.sees(rec)
}
