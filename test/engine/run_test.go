package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

func TestTheFirstCandidateLeadsAndTheNextFollowsWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stopA := b.run(b.candidate(store, "a"), "a")
		synctest.Wait()
		stopB := b.run(b.candidate(store, "b"), "b")
		time.Sleep(10 * ttl)
		require.Equal(t, "a", b.leaders(), "a leader that is well stays")

		require.ErrorIs(t, stopA(), context.Canceled)
		time.Sleep(ttl / 10)
		require.Equal(t, "a b", b.leaders(), "a handover does not wait for the TTL")
		require.ErrorIs(t, stopB(), context.Canceled)
		_, err := election.Current(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)
	})
}

func TestRunReturnsTheResultOfWorkThatEndsWhileItLeads(t *testing.T) {
	for _, result := range []error{nil, errors.New("disk on fire")} {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			err := b.candidate(store, "a").Run(t.Context(), func(context.Context, *election.Term) error {
				return result
			})
			require.Equal(t, result, err)
			_, err = store.Get(t.Context(), b.name)
			require.ErrorIs(t, err, kv.ErrVacant, "Run resigns before it returns")
		})
	}
}

func TestRunReturnsTheCauseOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		cause := errors.New("deploy")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		err := b.candidate(store, "a").Run(ctx, func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			require.Equal(t, cause, context.Cause(ctx))
			return errors.New("interrupted")
		})
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, election.ErrStopped)
		require.EqualError(t, err, cause.Error(), "and says no more")

		stop := b.run(b.candidate(store, "leader"), "leader")
		defer stop()
		synctest.Wait()
		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		err = b.candidate(store, "b").Run(ctx, func(context.Context, *election.Term) error {
			panic("never elected")
		})
		require.ErrorIs(t, err, cause, "also while it waits")
		require.ErrorIs(t, err, election.ErrStopped)
	})
}

func TestRunDoesNotCallLeadOnceItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := b.candidate(store, "a").Run(ctx, func(context.Context, *election.Term) error {
			panic("must not be called")
		})
		require.ErrorIs(t, err, context.Canceled)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

// runs are the methods that call the work themselves.
var runs = map[string]func(*election.Candidate, context.Context, func(context.Context, *election.Term) error) error{
	"Run": (*election.Candidate).Run, "TryRun": (*election.Candidate).TryRun,
}

func TestATermThatIsWonAsShutdownComesIsFreedAndNotKept(t *testing.T) {
	for name, run := range runs {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			faults := kvfault.Wrap(store)
			cause := errors.New("deploy")
			ctx, cancel := context.WithCancelCause(t.Context())
			c := b.candidate(winning{faults.Store, func() { cancel(cause) }}, "a", func(o *election.Options) {
				o.OnRole = func(r election.Role) { assert.NotEqual(t, election.RoleLeader, r, name) }
			})
			err := run(c, ctx, func(context.Context, *election.Term) error {
				panic("must not be called")
			})
			require.ErrorIs(t, err, cause, name)
			require.ErrorIs(t, err, election.ErrStopped, name)
			require.Equal(t, 1, faults.Calls(kvfault.Create), name)
			_, err = store.Get(t.Context(), b.name)
			require.ErrorIs(t, err, kv.ErrVacant, name)
			time.Sleep(3 * ttl)
			require.Zero(t, faults.Calls(kvfault.Refresh), "nobody keeps what nobody leads with")
		})
	}
}

// Whoever was told that it leads may rely on the time that the work takes to stop.
func TestATermThatWasToldOfIsNotFreedBeforeItsWorkHasReturned(t *testing.T) {
	for name, run := range runs {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.New(), newBallot(t)
			ctx, cancel := context.WithCancel(t.Context())
			called := 0
			c := b.candidate(store, "a", func(o *election.Options) {
				o.OnRole = func(r election.Role) {
					if r == election.RoleLeader {
						cancel()
					}
				}
			})
			err := run(c, ctx, func(ctx context.Context, _ *election.Term) error {
				called++
				require.ErrorIs(t, ctx.Err(), context.Canceled, name)
				time.Sleep(ttl / 2)
				_, err := store.Get(context.WithoutCancel(ctx), b.name)
				require.NoError(t, err, "%s has released the safe", name)
				return nil
			})
			require.ErrorIs(t, err, context.Canceled, name)
			require.Equal(t, 1, called, name)
			_, err = store.Get(t.Context(), b.name)
			require.ErrorIs(t, err, kv.ErrVacant, name)
		})
	}
}

// The context ends right after the engine has looked whether it has, each time another look.
func TestWorkIsCalledForEveryTermThatIsToldOfAndForNoOther(t *testing.T) {
	for name, run := range runs {
		called := 0
		for looks := range 20 {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				ctx, cancel := context.WithCancel(t.Context())
				told, led := 0, 0
				c := b.candidate(store, "a", func(o *election.Options) {
					o.OnRole = func(r election.Role) {
						if r == election.RoleLeader {
							told++
						}
					}
				})
				ended := &lookedAt{Context: ctx, end: cancel}
				ended.left.Store(int64(looks + 1))
				time.AfterFunc(ttl, cancel)
				err := run(c, ended, func(ctx context.Context, _ *election.Term) error {
					led++
					<-ctx.Done()
					return nil
				})
				require.ErrorIs(t, err, election.ErrStopped, "%s, %d looks", name, looks)
				require.Equal(t, told, led, "%s, %d looks", name, looks)
				called += led
				_, err = store.Get(t.Context(), b.name)
				require.ErrorIs(t, err, kv.ErrVacant)
			})
		}
		require.NotZero(t, called, name)
		require.Less(t, called, 20, name)
	}
}

// A lookedAt ends when Err was called for so often.
type lookedAt struct {
	context.Context
	left atomic.Int64
	end  func()
}

func (l *lookedAt) Err() error {
	err := l.Context.Err()
	if l.left.Add(-1) == 0 {
		l.end()
	}
	return err
}

// winning calls won before the answer to a create that succeeds is seen.
type winning struct {
	kv.Store
	won func()
}

func (s winning) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.Store.Create(ctx, name, rec)
	if err == nil {
		s.won()
	}
	return rec, err
}

// Invariant 6: released means stopped.
func TestShutdownKeepsTheLeaseUntilTheWorkHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var stopped atomic.Bool
		stopA := b.runWith(b.candidate(store, "a"), "a", func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			time.Sleep(5 * ttl) // drains
			require.NoError(t, term.Err(), "the lease is kept meanwhile")
			stopped.Store(true)
			return nil
		})
		synctest.Wait()
		stopB := b.runWith(b.candidate(store, "b"), "b", func(ctx context.Context, _ *election.Term) error {
			require.True(t, stopped.Load(), "b leads only after a's work has stopped")
			<-ctx.Done()
			return nil
		})
		time.Sleep(ttl)
		require.ErrorIs(t, stopA(), context.Canceled)
		time.Sleep(ttl / 10)
		require.Equal(t, "a b", b.leaders())
		stopB()
	})
}

func TestALeaderPublishesAndTransfersUntilItsWorkHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		var value, note string
		var errs, transfers []error
		stopA := b.runWith(b.candidate(faults.Store, "a", firstCome), "a", func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			ctx = context.WithoutCancel(ctx)
			faults.On(kvfault.Swap).DelayReplies(ttl / 20)
			errs = append(errs, term.Proclaim(ctx, "bye"))
			rec, err := store.Get(ctx, b.name)
			value = rec.Value
			errs = append(errs, err, term.SetHeirs(ctx, "b"))
			rec, err = store.Get(ctx, b.name)
			note = rec.Note
			errs = append(errs, err)
			transfers = append(transfers, term.Transfer(ctx, "nobody"), term.Transfer(ctx, "b"), term.Err())
			return nil
		})
		time.Sleep(ttl)
		stopB := b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		require.ErrorIs(t, stopA(), context.Canceled)
		require.Equal(t, make([]error, 4), errs)
		require.Equal(t, "bye", value)
		require.Contains(t, note, `"b"`)
		require.Len(t, transfers, 3)
		require.ErrorIs(t, transfers[0], election.ErrNoHeir)
		require.NoError(t, transfers[1])
		require.ErrorIs(t, transfers[2], election.ErrResigned)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		stopB()
	})
}

func TestACallForAnHeirEndsWithATermWhoseWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var took time.Duration
		var err error
		stop := b.runWith(b.candidate(store, "a", firstCome), "a", func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			ctx = context.WithoutCancel(ctx)
			time.AfterFunc(ttl/4, func() { _ = term.Resign(ctx) })
			began := time.Now()
			err = term.Transfer(ctx, "nobody")
			took = time.Since(began)
			return nil
		})
		time.Sleep(ttl)
		require.ErrorIs(t, stop(), context.Canceled)
		require.ErrorIs(t, err, election.ErrResigned)
		require.Less(t, took, ttl/2)
	})
}

func TestALeaderWhoseRecordIsDeletedStopsWithinASecondAndCampaignsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stop := b.run(b.candidate(store, "a"), "a")
		time.Sleep(ttl)
		first := b.last()
		store.Remove(b.name)
		time.Sleep(time.Second)
		require.ErrorIs(t, first.Err(), election.ErrLost)
		require.ErrorIs(t, context.Cause(first.Context()), election.ErrLost)
		require.Equal(t, "a a", b.leaders())
		stop()
	})
}

func TestALeaderWhoseRecordIsOverwrittenStopsAndLeavesTheForeignRecordAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stop := b.run(b.candidate(store, "a"), "a")
		time.Sleep(ttl)
		store.Put(b.name, "cron@host-7")
		time.Sleep(time.Second)
		require.ErrorIs(t, b.last().Err(), election.ErrLost)
		time.Sleep(10 * ttl)
		require.Equal(t, "a", b.leaders(), "a foreign record is somebody's lock")
		stop()
		rec, err := store.Get(t.Context(), b.name)
		require.NoError(t, err)
		require.Equal(t, "cron@host-7", rec.Value)
	})
}

func TestWorkThatOutlivesALostTermIsWaitedForAndItsResultDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var returned atomic.Int64
		stop := b.runWith(b.candidate(store, "a"), "a", func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(3 * ttl)
			returned.Add(1)
			return errors.New("half done")
		})
		time.Sleep(ttl)
		store.Remove(b.name)
		time.Sleep(2 * ttl)
		require.Equal(t, "a", b.leaders(), "no second term while the work of the first goes on")
		time.Sleep(2 * ttl)
		require.Equal(t, "a a", b.leaders())
		require.EqualValues(t, 1, returned.Load())
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestResignWithinLeadEndsTheTermButFreesTheSafeOnlyWhenLeadReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		turns := 0
		stopA := b.runWith(b.candidate(store, "a"), "a", func(ctx context.Context, term *election.Term) error {
			if turns++; turns > 1 {
				<-ctx.Done()
				return nil
			}
			time.Sleep(ttl)
			require.NoError(t, term.Resign(t.Context()))
			require.ErrorIs(t, context.Cause(ctx), election.ErrResigned)
			time.Sleep(3 * ttl)
			rec, err := store.Get(t.Context(), b.name)
			require.NoError(t, err)
			require.Equal(t, term.Token(), rec.Token, "still in the safe while lead runs")
			return nil
		})
		synctest.Wait()
		stopB := b.run(b.candidate(store, "b"), "b")
		time.Sleep(10 * ttl)
		require.Equal(t, "a b", b.leaders(), "who resigns lets the others have a go first")
		stopB()
		time.Sleep(ttl)
		require.Equal(t, "a b a", b.leaders())
		stopA()
	})
}

func TestAPanicInLeadFreesTheSafeOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		require.PanicsWithValue(t, "boom", func() {
			_ = b.candidate(store, "a").Run(t.Context(), func(context.Context, *election.Term) error {
				panic("boom")
			})
		})
		_, err := store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

func TestManyCandidatesOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var stops []func() error
		for range 200 {
			stops = append(stops, b.run(b.candidate(store, "x"), "x"))
		}
		for i, stop := range stops {
			time.Sleep(ttl / 10)
			require.NoError(t, b.last().Err())
			if i%10 == 0 {
				require.NoError(t, b.last().Resign(t.Context()))
				time.Sleep(time.Second)
			}
			stop()
		}
	})
}

func TestRunWithoutWorkIsRefusedBeforeItCampaigns(t *testing.T) {
	faults := kvfault.Wrap(memkv.New())
	require.ErrorContains(t, newBallot(t).candidate(faults.Store, "a").Run(t.Context(), nil), "lead is nil")
	require.Zero(t, faults.Calls(kvfault.Create)+faults.Calls(kvfault.Watch))
}
