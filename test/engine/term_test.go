package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestProclaimPublishesAnotherValueUnderTheSameToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b, began := memkv.New(), newBallot(t), time.UnixMilli(time.Now().UnixMilli())
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		for _, value := range []string{"10.0.0.1:80", "", strings.Repeat("x", 64<<10), "\xff\x00"} {
			require.NoError(t, term.Proclaim(t.Context(), value))
			leader, err := election.Current(t.Context(), store, b.name)
			require.NoError(t, err)
			require.Equal(t, election.Leader{ID: "a", Value: value, Token: term.Token(), Since: began}, leader)
			time.Sleep(ttl)
			require.NoError(t, term.Err())
		}
		require.ErrorContains(t, term.Proclaim(t.Context(), strings.Repeat("x", 64<<10+1)), "too long")
		require.NoError(t, term.Resign(t.Context()))
		require.ErrorIs(t, term.Proclaim(t.Context(), "late"), election.ErrResigned)
	})
}

func TestProclaimFindsOutThatTheTermIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		store.Remove(b.name)
		require.ErrorIs(t, term.Proclaim(t.Context(), "v"), election.ErrLost)
		require.ErrorIs(t, term.Err(), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestUntilMovesWithEachRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		began := time.Now()
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		require.Equal(t, ttl*9/10, term.Until().Sub(began), "TTL less margin, from the send")
		time.Sleep(ttl * 4 / 10)
		require.Equal(t, ttl*12/10, term.Until().Sub(began), "refreshed after a third of that")
		require.NoError(t, term.Resign(t.Context()))
	})
}

var errSick = errors.New("sick")

// A gate is a health check that tests switch.
type gate struct{ sick, hangs atomic.Bool }

func (g *gate) option(o *election.Options) { o.Health = g.check }

func (g *gate) check(ctx context.Context) error {
	if g.hangs.Load() {
		<-ctx.Done()
	}
	if g.sick.Load() {
		return errSick
	}
	return ctx.Err()
}

func TestTheHealthCheckKeepsACandidateOutAndMakesALeaderStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var health gate
		a := b.candidate(store, "a", health.option)
		health.sick.Store(true)
		var kept atomic.Bool
		stop := b.runWith(a, "a", func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			time.Sleep(2 * ttl)
			_, err := election.Current(t.Context(), store, b.name)
			kept.Store(err == nil)
			return nil
		})
		time.Sleep(5 * ttl)
		require.Empty(t, b.leaders(), "unhealthy: no campaign")
		health.sick.Store(false)
		time.Sleep(ttl)
		require.Equal(t, "a", b.leaders())
		health.sick.Store(true)
		time.Sleep(ttl)
		term := b.last()
		require.ErrorIs(t, term.Err(), election.ErrResigned, "unhealthy: no term")
		require.ErrorIs(t, term.Err(), errSick, "and the reason is told")
		time.Sleep(5 * ttl)
		require.True(t, kept.Load(), "the lease was kept until the work had stopped")
		require.Equal(t, "a", b.leaders(), "it holds off")
		_, err := election.Current(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)
		health.sick.Store(false)
		time.Sleep(ttl)
		require.Equal(t, "a a", b.leaders())
		stop()
	})
}

func TestAHealthCheckThatHangsCountsAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var health gate
		a := b.candidate(store, "a", health.option)
		stop := b.run(a, "a")
		time.Sleep(ttl)
		health.hangs.Store(true)
		time.Sleep(ttl)
		require.ErrorIs(t, b.last().Err(), election.ErrResigned)
		stop()
	})
}

func TestATermThatIsLostAndNeverResignedFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var health gate
		a := b.candidate(store, "a", health.option)
		term, err := a.Campaign(t.Context())
		require.NoError(t, err)
		health.sick.Store(true)
		<-term.Context().Done()
		time.Sleep(ttl)
		_, err = election.Current(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)
	})
}

func TestResignTellsOfALossThatNobodyHasToldYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Watch).DropRequests()
		store.Remove(b.name)
		require.NoError(t, term.Err())
		require.ErrorIs(t, term.Resign(t.Context()), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()), "nothing is left to free")
	})
}

// Invariant 10: one trouble does not hide the other.
func TestResignTellsOfALossWhateverElseGoesWrong(t *testing.T) {
	for what, trouble := range map[string]struct {
		with func(heirs *kvfault.Link)
		told error // by Resign as well; nil if that is not its own trouble
	}{
		"the heir's place cannot be given up": {func(heirs *kvfault.Link) { heirs.On(kvfault.Delete).Fail(errStore) }, errStore},
		"nor does that answer":                {func(heirs *kvfault.Link) { heirs.On(kvfault.Delete).DropRequests() }, context.DeadlineExceeded},
		"nobody can tell who is heir":         {func(heirs *kvfault.Link) { heirs.On(kvfault.Get).Fail(errStore) }, nil},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				trouble.with(faults.heirs)
				term, err := b.candidate(faults.Store, "a", byRank(0)).Campaign(t.Context())
				require.NoError(t, err)
				faults.On(kvfault.Watch).DropRequests()
				store.Remove(b.name)
				require.NoError(t, term.Err())
				err = resignSoon(t, term)
				require.ErrorIs(t, err, election.ErrLost)
				if trouble.told != nil {
					require.ErrorIs(t, err, trouble.told)
					err = resignSoon(t, term)
					require.ErrorIs(t, err, trouble.told)
					require.NotErrorIs(t, err, election.ErrLost, "that is told once")
				}
				faults.heirs.Heal()
				faults.Heal()
				require.NoError(t, term.Resign(t.Context()))
				requireVacant(t, store, b.name+":heir")
			})
		})
	}
}

// The store answers after the caller of Resign has given up, and tells only then that the record
// was gone.
func TestALossIsToldByTheResignThatFindsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a", noHeir).Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Watch).DropRequests()
		faults.On(kvfault.Delete).DelayRequests(ttl / 8)
		store.Remove(b.name)
		short, cancel := context.WithTimeout(t.Context(), ttl/16)
		defer cancel()
		err = term.Resign(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, election.ErrLost, "that is not known yet")
		time.Sleep(ttl / 4)
		require.ErrorIs(t, term.Resign(t.Context()), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()), "that is told once")
	})
}

// resignSoon resigns, and does not wait for long.
func resignSoon(t *testing.T, term *election.Term) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
	defer cancel()
	return term.Resign(ctx)
}

// However often it is asked, a leader stops trying when the record has faded.
func TestResignThatIsCalledAgainAndAgainComesToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Delete).Fail(errStore)
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), ttl/50)
			err = term.Resign(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		require.ErrorContains(t, err, "what is left in the store will expire by itself")
	})
}

func TestTransferTellsOfALossThatNobodyHasToldYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		term, err := b.candidate(faults.Store, "a", firstCome).Campaign(t.Context())
		require.NoError(t, err)
		b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		faults.On(kvfault.Swap, kvfault.HandOver, kvfault.Delete).Fail(kv.ErrStale)
		require.NoError(t, term.Err())
		require.ErrorIs(t, term.Transfer(t.Context(), "b"), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()), "that is told once")
	})
}

func TestResignOfWhatItMayHaveFreedItselfTellsOfNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Delete).Next(1).FailReplies(errors.New("connection reset"))
		require.NoError(t, term.Resign(t.Context()))
		require.Equal(t, 2, faults.Calls(kvfault.Delete))
	})
}

func TestRunSaysThatTheRecordWasGoneWhenItsWorkHadEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		var told strings.Builder
		c := b.candidate(faults.Store, "a", func(o *election.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&told, nil))
		})
		require.NoError(t, c.Run(t.Context(), func(context.Context, *election.Term) error {
			faults.On(kvfault.Watch).DropRequests()
			store.Remove(b.name)
			return nil
		}))
		require.Contains(t, told.String(), "the record was gone before it was released")
	})
}

func TestRunDoesNotTakeItsOwnReleaseForALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
		faults.On(kvfault.Delete).Next(1).FailReplies(errors.New("connection reset"))
		var told strings.Builder
		c := b.candidate(faults.Store, "a", func(o *election.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&told, nil))
		})
		require.NoError(t, c.Run(t.Context(), func(context.Context, *election.Term) error { return nil }))
		require.Equal(t, 2, faults.Calls(kvfault.Delete))
		require.NotContains(t, told.String(), "level=WARN")
	})
}

func TestARecordIsKnownToStandAsSoonAsItWasProclaimed(t *testing.T) {
	t.Parallel()
	c, err := election.New(memkv.New(), "billing", &election.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	term, err := c.Campaign(t.Context())
	require.NoError(t, err)
	for i := range 10_000 {
		value := strconv.Itoa(i)
		require.NoError(t, term.Proclaim(t.Context(), value))
		require.Equal(t, value, term.Record().Value)
	}
	require.NoError(t, term.Resign(t.Context()))
}
