package etcdkv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// What package doc says each operation of an Observed costs.
func TestEachObservedOperationCostsWhatTheDocumentationSays(t *testing.T) {
	var sent count
	store := observed(t, &sent, testenv.Etcd(t))
	costs := func(op string, want int64, f func() error) {
		t.Helper()
		before := sent.Load()
		require.NoError(t, f(), op)
		require.Equal(t, want, sent.Load()-before, op)
	}
	rec := signed("v")
	name := rec.Signature
	var err error
	costs("create", 1, func() error { rec, err = store.Create(within(t, patience), name, rec); return err })
	costs("create, refused", 2, func() error {
		_, err := store.Create(within(t, patience), name, signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld)
		return nil
	})
	costs("refresh", 1, func() error { _, err := store.Refresh(within(t, patience), name, rec); return err })
	costs("swap, new value", 1, func() error { rec = publish(t, store, name, rec, "published"); return nil })
	costs("swap, hand-over", 1, func() error { rec, err = store.Swap(within(t, patience), name, rec, signed("next")); return err })
	costs("get", 1, func() error { _, err := store.Get(within(t, patience), name); return err })
	costs("delete", 1, func() error { return store.Delete(within(t, patience), name, rec) })

	names, _ := abandoned(t, observed(t, nil, testenv.Etcd(t)), 1, store)
	time.Sleep(brief + brief/4)
	costs("create over a dead record", 1, func() error { _, err := store.Create(within(t, patience), names[0], signed("v")); return err })
}

// Each refresh is pushed to whoever waits, and asks nothing of it.
func TestAWaitingObserverSendsNothingForARefresh(t *testing.T) {
	const refreshes = 20
	var sent count
	owner := observed(t, nil, testenv.Etcd(t))
	name, rec := held(t, owner)
	w := watching(t, observed(t, &sent, testenv.Etcd(t)), name)
	require.Equal(t, rec, w.next().rec)
	time.Sleep(brief) // until the watch waits
	before := sent.Load()
	for range refreshes {
		_, err := owner.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
	}
	rec = publish(t, owner, name, rec, "the last")
	require.Equal(t, rec, w.next().rec, "no refresh is told of")
	n := sent.Load() - before
	t.Logf("%d messages for %d refreshes", n, refreshes)
	require.LessOrEqual(t, n, int64(3), "a round of the backstop may have come between")
}

// With the shortest TTL there is.
func TestALeaderOfHalfASecondCostsAFewWritesASecond(t *testing.T) {
	t.Parallel() // it mostly waits
	const while = 4 * time.Second
	var leads, waits count
	name := signed("").Signature
	elected(t, observed(t, &leads, testenv.Etcd(t)), name, &election.Options{TTL: brief})
	watching(t, observed(t, &waits, testenv.Etcd(t)), name).next()
	time.Sleep(brief) // until the watch waits
	led, waited := leads.Load(), waits.Load()
	time.Sleep(while)
	led, waited = leads.Load()-led, waits.Load()-waited
	t.Logf("in %v the leader has sent %d messages, the one who waits %d", while, led, waited)
	require.LessOrEqual(t, led, int64(10*while/time.Second))
	require.LessOrEqual(t, waited, int64(10), "the leader may have been judged on a busy machine")
}
