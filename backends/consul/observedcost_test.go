//go:build unix

package consulkv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// What package doc says each operation of an Observed costs.
func TestEachObservedOperationCostsWhatTheDocumentationSays(t *testing.T) {
	s, _, requests := observed(t)
	costs := func(op string, want int64, f func() error) {
		t.Helper()
		before := requests.count.Load()
		require.NoError(t, f(), op)
		require.Equal(t, want, requests.count.Load()-before, op)
	}
	name, rec := newName(), signed("v", time.Minute)
	var err error
	costs("create", 1, func() error { rec, err = s.Create(t.Context(), name, rec); return err })
	costs("create, refused", 2, func() error {
		_, err := s.Create(t.Context(), name, signed("v", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		return nil
	})
	costs("refresh", 1, func() error { _, err := s.Refresh(t.Context(), name, rec); return err })
	costs("swap, new value", 1, func() error { rec = publish(t, s, name, rec, "published"); return nil })
	costs("swap, hand-over", 1, func() error { rec, err = s.Swap(t.Context(), name, rec, signed("next", time.Minute)); return err })
	costs("get", 1, func() error { _, err := s.Get(t.Context(), name); return err })
	costs("delete", 1, func() error { return s.Delete(t.Context(), name, rec) })

	names, _ := abandoned(t, 1, s)
	time.Sleep(brief + brief/4)
	costs("create over a dead record", 1, func() error { _, err := s.Create(t.Context(), names[0], signed("v", time.Minute)); return err })
	require.Zero(t, requests.lax.Load(), "reads that ask no leader")
}

// Each refresh ends the query of an observer that waits, and it sends another.
func TestAWaitingObserverSendsARequestPerRefresh(t *testing.T) {
	const refreshes = 8
	owner, _, _ := observed(t)
	waiting, _, requests := observed(t)
	name := newName()
	rec := create(t, owner, name, signed("v", time.Minute))
	next := watching(t, waiting, name)
	require.Equal(t, rec, next().rec)
	time.Sleep(brief) // until the query waits
	before := requests.count.Load()
	for range refreshes {
		_, err := owner.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		time.Sleep(brief / 2)
	}
	rec = publish(t, owner, name, rec, "the last")
	require.Equal(t, rec, next().rec, "no refresh is told of")
	n := requests.count.Load() - before
	t.Logf("%d requests for %d refreshes", n, refreshes)
	require.Positive(t, n)
	require.LessOrEqual(t, n, int64(refreshes+2), "one more for the new value, and one at a backstop")
	require.Zero(t, requests.lax.Load())
}

// With the shortest TTL there is.
func TestALeaderOfHalfASecondCostsAFewRequestsASecond(t *testing.T) {
	const while = 4 * time.Second
	leader, _, leads := observed(t)
	waiter, _, waits := observed(t)
	name := newName()
	candidate, err := election.New(leader, name, &election.Options{TTL: brief})
	require.NoError(t, err)
	term, err := candidate.Campaign(within(t, time.Minute))
	require.NoError(t, err)
	watching(t, waiter, name)()
	time.Sleep(brief) // until the query waits
	led, waited := leads.count.Load(), waits.count.Load()
	time.Sleep(while)
	led, waited = leads.count.Load()-led, waits.count.Load()-waited
	t.Logf("in %v the leader has sent %d requests, the one who waits %d", while, led, waited)
	require.LessOrEqual(t, led, int64(20*while/time.Second), "it watches too")
	require.LessOrEqual(t, waited, int64(10*while/time.Second))
	_ = term.Resign(within(t, time.Minute)) // it may have been lost on a busy machine
}
