package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

func TestTheContextOfACampaignDoesNotBoundItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		store, b := memkv.New(), newBallot(t)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "trace"), time.Second)
		defer cancel()
		term, err := b.candidate(store, "a").Campaign(ctx)
		require.NoError(t, err)
		time.Sleep(10 * ttl)
		require.Error(t, ctx.Err())
		require.NoError(t, term.Err())
		require.NoError(t, term.Context().Err())
		require.Equal(t, "trace", term.Context().Value(key{}))
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestACampaignEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stop := b.run(b.candidate(store, "a"), "a")
		defer stop()
		synctest.Wait()

		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), ttl, cause)
		defer cancel()
		term, err := b.candidate(store, "b").Campaign(ctx)
		require.Nil(t, term)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, b.name)
	})
}

// Whether it has begun by then is a matter of luck.
func TestACampaignWhoseContextHasEndedLeavesNothing(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			term, err := b.candidate(store, "a").Campaign(ctx)
			require.Nil(t, term)
			require.ErrorIs(t, err, context.Canceled)
			synctest.Wait()
			_, err = store.Get(t.Context(), b.name)
			require.ErrorIs(t, err, kv.ErrVacant)
		})
	}
}

func TestResignFreesTheSafeAtOnceAndTwiceIsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, term.Resign(t.Context()))
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
		require.ErrorIs(t, term.Err(), election.ErrResigned)
		require.ErrorIs(t, term.Context().Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(term.Context()), election.ErrResigned)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestResignWaitsForWhatTheTermHasStarted(t *testing.T) {
	for _, op := range []kvfault.Op{kvfault.Refresh, kvfault.Watch} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := kvfault.Wrap(memkv.New())
				term, err := newBallot(t).candidate(faults.Store, "a").Campaign(t.Context())
				require.NoError(t, err)
				faults.On(op).Hang()
				time.Sleep(ttl / 2) // a refresh is under way

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, term.Resign(ctx), context.DeadlineExceeded)
				if op == kvfault.Refresh {
					require.Zero(t, faults.Calls(kvfault.Delete), "it may still write")
				}

				resigned := make(chan error, 1)
				go func() { resigned <- term.Resign(t.Context()) }()
				time.Sleep(ttl / 2)
				require.Empty(t, resigned)
				faults.Heal()
				require.NoError(t, <-resigned)
			})
		})
	}
}

func TestResignOfAnOldTermLeavesTheNewOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		a, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		b.count("a", a)
		store.Remove(b.name)
		began := time.UnixMilli(time.Now().UnixMilli())
		next, err := b.candidate(store, "b").Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		b.count("b", next)

		require.NoError(t, a.Resign(t.Context()))
		require.ErrorIs(t, a.Err(), election.ErrLost, "the first reason stays")
		leader, err := election.Current(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, election.Leader{ID: "b", Value: "at b", Token: next.Token(), Since: began}, leader)
		require.NoError(t, next.Resign(t.Context()))
	})
}

func TestACandidateCanCampaignAgainAfterEachTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		a := b.candidate(store, "a")
		for i := range 5 {
			term, err := a.Campaign(t.Context())
			require.NoError(t, err)
			b.count("a", term)
			if i%2 == 0 {
				store.Remove(b.name)
				<-term.Context().Done()
			}
			require.NoError(t, term.Resign(t.Context()))
		}
	})
}

func TestARecordThatCannotBeWrittenIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		_, err := b.candidate(refusing{memkv.New()}, "a").Campaign(t.Context())
		require.ErrorIs(t, err, kv.ErrInvalid)
		err = b.candidate(refusing{memkv.New()}, "a").Run(t.Context(), func(context.Context, *election.Term) error { return nil })
		require.ErrorIs(t, err, kv.ErrInvalid)
	})
}

// refusing is a store that does not take the record.
type refusing struct{ *memkv.Store }

func (refusing) Create(context.Context, string, kv.Record) (kv.Record, error) {
	return kv.Record{}, kv.ErrInvalid
}

func TestASafeThatTheStoreKeepsClosedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults, b := kvfault.Wrap(memkv.New()), newBallot(t)
		faults.On(kvfault.Create).Fail(fmt.Errorf("the lock-delay has not passed: %w", kv.ErrHeld))
		var told strings.Builder
		b.run(b.candidate(faults.Store, "a", func(o *election.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&told, nil))
		}), "a")
		time.Sleep(10 * ttl)
		faults.Heal()
		time.Sleep(ttl)
		require.Equal(t, "a", b.leaders())
		require.Equal(t, 1, strings.Count(told.String(), "waiting for the store to open the safe"))
		require.Contains(t, told.String(), "lock-delay")
	})
}
