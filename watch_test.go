package election_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
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
			{ID: "a/b", Value: "at a/b", Token: a.Token()},
			{ID: "a/b", Value: "moved", Token: a.Token()},
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

func TestAnObserverSeesTheLineThatTheLeaderPublishedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		line := func() []string {
			ids, err := election.CurrentLine(t.Context(), store, "billing")
			require.NoError(t, err)
			return ids
		}
		_, err := election.CurrentLine(t.Context(), store, "billing")
		require.Equal(t, election.ErrNoLeader, err)
		_, err = election.CurrentLine(t.Context(), store, "billing:heir")
		require.Error(t, err)
		c, err := election.New(store, "billing", &election.Options{ID: "a", Succession: election.NextInLine, Heirs: []string{"b", "c"}})
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
		require.Equal(t, over, <-result)
		require.NoError(t, kept, "the safe is held while the work stops")
		require.Equal(t, []string{
			"elected", "defeated: election: leadership lost: the record is gone or somebody else's",
			"elected", "defeated: over",
		}, calls)
		_, err := election.Current(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)

		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(ttl, func() { cancel(over) })
		require.Equal(t, over, b.candidate(store, "a").Notify(ctx, election.Callbacks{}), "callbacks may be nil")
	})
}
