package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestWatchTellsOfEachLeaderAndOfNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []election.Leader
		var errs []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for leader, err := range election.Watch(ctx, store, b.name) {
				seen, errs = append(seen, leader), append(errs, err)
			}
		}()
		synctest.Wait()
		began := time.UnixMilli(time.Now().UnixMilli())
		a, err := b.candidate(store, "a/b").Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(10 * ttl)
		require.NoError(t, a.Proclaim(t.Context(), "moved"))
		synctest.Wait()
		require.NoError(t, a.Resign(t.Context()))
		time.Sleep(ttl)
		store.Put(b.name, "old lock")
		synctest.Wait()
		cancel()
		<-done

		require.Equal(t, []election.Leader{
			{},
			{ID: "a/b", Value: "at a/b", Token: a.Token(), Since: began},
			{ID: "a/b", Value: "moved", Token: a.Token(), Since: began},
			{},
			{Value: "old lock", Foreign: true},
			{},
		}, seen)
		require.Equal(t, election.ErrNoLeader, errs[0])
		require.Equal(t, election.ErrNoLeader, errs[3], "nobody leads is not the end")
		require.NoError(t, errors.Join(errs[1], errs[2], errs[4]))
		require.ErrorIs(t, errs[5], context.Canceled, "the end has a reason")
	})
}

func TestAWatchGoesOnAfterTroubleWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		a, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		leader, err := election.Current(t.Context(), store, b.name)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []election.Leader
		var errs []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for leader, err := range election.Watch(ctx, faults.Store, b.name) {
				seen, errs = append(seen, leader), append(errs, err)
			}
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []election.Leader{leader}, seen)

		faults.On(kvfault.Watch).Fail(errStore)
		time.Sleep(time.Minute)
		synctest.Wait()
		trouble := errs[1:]
		require.Greater(t, len(trouble), 20, "it tries again, after two seconds at most,")
		require.Less(t, len(trouble), 80, "and does not spin")
		for i, err := range trouble {
			require.ErrorIs(t, err, errStore)
			require.Zero(t, seen[1+i])
		}
		faults.Heal()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, leader, seen[len(seen)-1], "who leads is told again")
		require.NoError(t, errs[len(errs)-1])

		cancel()
		<-done
		require.ErrorIs(t, errs[len(errs)-1], context.Canceled)

		for _, err := range election.Watch(t.Context(), faults.Store, b.name) {
			faults.On(kvfault.Watch).Fail(kv.ErrInvalid)
			if errors.Is(err, kv.ErrInvalid) {
				cancel = nil // a watch that can never be ends by itself
			}
		}
		require.Nil(t, cancel)
		require.NoError(t, a.Resign(t.Context()))
	})
}

func TestACandidateKnowsWhetherItLeadsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
		c := b.candidate(faults.Store, "a")
		require.False(t, c.IsLeader())
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		require.True(t, c.IsLeader())
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl)
		require.False(t, c.IsLeader())
		require.NoError(t, term.Resign(t.Context()))
		term, err = c.Campaign(t.Context())
		require.NoError(t, err)
		require.True(t, c.IsLeader())
		require.NoError(t, term.Resign(t.Context()))
		require.False(t, c.IsLeader())
	})
}

// A store whose disk is full may take claims and no refreshes.
func TestTermsThatNothingKeepsAliveComeLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Refresh).Fail(errStore)
		b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(100 * ttl)
		require.LessOrEqual(t, len(b.all()), 16, "eight TTL between them in the end")
		require.Greater(t, len(b.all()), 8, "and no more than that")

		b.run(b.candidate(store, "b"), "b")
		time.Sleep(3 * ttl)
		require.True(t, strings.HasSuffix(b.leaders(), "b"), "others are not held up")
	})
}

func TestAnObserverSeesTheHeirsThatTheLeaderPublishedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		line := func() []string {
			ids, err := election.CurrentHeirs(t.Context(), store, "billing")
			require.NoError(t, err)
			return ids
		}
		_, err := election.CurrentHeirs(t.Context(), store, "billing")
		require.Equal(t, election.ErrNoLeader, err)
		_, err = election.CurrentHeirs(t.Context(), store, "billing:heir")
		require.Error(t, err)
		c, err := election.New(store, "billing", &election.Options{ID: "a", Succession: election.ByList, Heirs: []string{"b", "c"}})
		require.NoError(t, err)
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c"}, line())
		require.NoError(t, term.SetHeirs(t.Context(), "d"))
		require.Equal(t, []string{"d"}, line())
		require.NoError(t, term.SetHeirs(t.Context()))
		require.Empty(t, line())
		require.NoError(t, term.Resign(t.Context()))
		store.Put("billing", `{"heirs":["x"]}`)
		require.Empty(t, line(), "somebody's lock has none")
	})
}

func TestBreakingOutOfAWatchEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, err := range election.Watch(t.Context(), memkv.New(), "billing") {
			require.Equal(t, election.ErrNoLeader, err)
			break
		}
		for _, err := range election.Watch(t.Context(), memkv.New(), "") {
			require.Error(t, err)
		}
	})
}

func TestNotifyPairsItsCallbacksAndFreesTheSafeAfterTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var calls []string
		var kept error
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() {
			result <- b.candidate(store, "a").Notify(ctx, election.Callbacks{
				OnElected: func(_ context.Context, term *election.Term) {
					b.count("a", term)
					calls = append(calls, "elected")
				},
				OnDefeated: func(cause error) {
					calls = append(calls, "defeated: "+cause.Error())
					time.Sleep(2 * ttl)
					_, kept = election.Current(t.Context(), store, b.name)
				},
			})
		}()
		time.Sleep(ttl)
		store.Remove(b.name)
		time.Sleep(5 * ttl)
		over := errors.New("over")
		cancel(over)
		require.ErrorIs(t, <-result, over)
		require.NoError(t, kept, "the safe is held while the work stops")
		require.Equal(t, []string{
			"elected", "defeated: election: leadership lost: the record is gone or somebody else's",
			"elected", "defeated: over",
		}, calls)
		_, err := election.Current(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)

		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(ttl, func() { cancel(over) })
		require.ErrorIs(t, b.candidate(store, "a").Notify(ctx, election.Callbacks{}), over, "callbacks may be nil")
	})
}
