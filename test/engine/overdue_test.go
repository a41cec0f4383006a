package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

// deaf is work that goes on until it is let go, whatever its context says.
func deaf() (lead func(context.Context, *election.Term) error, done func()) {
	released := make(chan struct{})
	return func(context.Context, *election.Term) error {
		<-released
		return nil
	}, sync.OnceFunc(func() { close(released) })
}

func TestWorkIsOverdueFromTheMomentAtWhichAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		a := b.candidate(faults.Store, "a")
		lead, done := deaf()
		defer done()
		b.runWith(a, "a", lead)
		synctest.Wait()
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl*9/10 + time.Second/2)
		require.Equal(t, election.RoleIdle, a.Status().Role, "its term is over")
		require.Zero(t, a.Status().Overdue, "it may still be about to stop")
		time.Sleep(ttl)
		require.InDelta(t, ttl-time.Second/2, a.Status().Overdue, float64(ttl/100))
		done()
		synctest.Wait()
		require.Zero(t, a.Status().Overdue)
		faults.On(kvfault.Refresh).Heal()
	})
}

func TestWorkIsNotOverdueWhileTheLeaseIsKeptForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		a := b.candidate(faults.Store, "a")
		lead, done := deaf()
		defer done()
		stop := b.runWith(a, "a", lead)
		synctest.Wait()
		require.NoError(t, b.last().Resign(t.Context()))
		requireNotOverdue := func() {
			for range 30 {
				time.Sleep(ttl / 10)
				require.Equal(t, election.RoleIdle, a.Status().Role)
				require.Zero(t, a.Status().Overdue, "the record keeps others out")
			}
		}
		requireNotOverdue()
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(2 * ttl)
		require.Positive(t, a.Status().Overdue)
		done()
		require.Error(t, stop())
		require.Zero(t, a.Status().Overdue)
		faults.On(kvfault.Refresh).Heal()
	})
}

func TestWorkWhoseRecordIsGoneHasAMarginToStopIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBallot(t), memkv.New()
		a := b.candidate(store, "a")
		lead, done := deaf()
		defer done()
		b.runWith(a, "a", lead)
		time.Sleep(ttl / 10)
		store.Put(b.name, "mine")
		time.Sleep(ttl/10 - time.Second/10)
		require.Equal(t, election.RoleIdle, a.Status().Role)
		require.Zero(t, a.Status().Overdue)
		time.Sleep(time.Second)
		require.Positive(t, a.Status().Overdue)
		require.Less(t, a.Status().Overdue, time.Second)
	})
}

func TestATermOfCampaignIsOverdueUntilItIsResigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		a := b.candidate(faults.Store, "a")
		term, err := a.Campaign(t.Context())
		require.NoError(t, err)
		defer func() { _ = term.Resign(t.Context()) }()
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(2 * ttl)
		require.Positive(t, a.Status().Overdue)
		_ = term.Resign(t.Context())
		require.Zero(t, a.Status().Overdue)
		faults.On(kvfault.Refresh).Heal()
	})
}

// The campaign may be won at the very moment at which nobody wants it any more.
func TestATermThatNobodyGotIsNeverOverdue(t *testing.T) {
	const trials = 50
	for range trials {
		synctest.Test(t, func(t *testing.T) {
			b, faults := newBallot(t), kvfault.Wrap(memkv.New())
			faults.On(kvfault.Create).DelayReplies(time.Second)
			a := b.candidate(faults.Store, "a")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if term, err := a.Campaign(ctx); err == nil {
				require.NoError(t, term.Resign(t.Context()))
			}
			time.Sleep(10 * ttl)
			require.Zero(t, a.Status().Overdue)
		})
	}
}
