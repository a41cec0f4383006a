package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/lock"
)

func TestALockOfAProcessThatIsCutOffIsLostBeforeOthersHaveIt(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		held := locked(t, m)
		time.Sleep(10 * ttl)
		faults.On().Hang()
		lost := make(chan time.Time, 1)
		context.AfterFunc(held.Context(), func() { lost <- time.Now() })
		other := locked(t, newMutex(t, store))
		obtained := time.Now()
		require.GreaterOrEqual(t, obtained.Sub(<-lost), ttl/10, "a margin before")
		require.ErrorIs(t, held.Err(), lock.ErrLost)
		require.ErrorIs(t, held.Context().Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(held.Context()), lock.ErrLost)
		require.Zero(t, held.Remaining())
		faults.Heal()

		err := held.Unlock(t.Context())
		require.ErrorIs(t, err, lock.ErrLost)
		require.NotErrorIs(t, err, lock.ErrUnavailable)
		require.NoError(t, other.Err(), "the lock of the next is left alone")
		time.Sleep(5 * ttl)
		require.NoError(t, other.Err())
		require.NoError(t, other.Unlock(t.Context()))
		again := locked(t, m)
		require.Greater(t, again.Token(), other.Token(), "the same Mutex can be locked again")
		require.NoError(t, again.Unlock(t.Context()))
	})
}

func TestUnlockOfALostLockFreesWhatIsLeftOfIt(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		held := locked(t, newMutex(t, faults.Store))
		faults.On(kvfault.Refresh).DropReplies() // the record lives on, and nobody here knows
		<-held.Context().Done()
		faults.Heal()
		_, err := store.Get(t.Context(), name)
		require.NoError(t, err, "its record is still there")
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
		vacant(t, store)
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrMisuse)
	})
}

func TestUnlockTellsOfALossThatNobodyHasNoticed(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		held := locked(t, m)
		faults.On(kvfault.Watch).DropRequests()
		store.Remove(name)
		require.NoError(t, held.Err())
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrMisuse)
		faults.Heal()
		require.NoError(t, locked(t, m).Unlock(t.Context()))
	})
}

func TestUnlockingAgainIsMisuseAndHarmsNobody(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		m := newMutex(t, store)
		first := locked(t, m)
		require.NoError(t, first.Unlock(t.Context()))
		second := locked(t, m)
		for range 3 {
			require.ErrorIs(t, first.Unlock(t.Context()), lock.ErrMisuse)
		}
		require.NoError(t, second.Err(), "the lock of the next goroutine")
		_, err := m.TryLock(t.Context())
		require.ErrorIs(t, err, lock.ErrHeld, "whose turn it still is")
		require.NoError(t, second.Unlock(t.Context()))
		vacant(t, store)
	})
}

func TestUnlockWithoutALockIsMisuseAndNoPanic(t *testing.T) {
	var none *lock.Held
	require.ErrorIs(t, none.Unlock(t.Context()), lock.ErrMisuse)
	require.ErrorIs(t, new(lock.Held).Unlock(t.Context()), lock.ErrMisuse)
}

func TestUnlockFreesThoughItsContextHasEnded(t *testing.T) {
	for what, ended := range map[string]func(*testing.T, *lock.Held) context.Context{
		"cancelled": func(t *testing.T, _ *lock.Held) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		},
		"timed out": func(t *testing.T, _ *lock.Held) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 0)
			cancel()
			return ctx
		},
		"the lock's own": func(_ *testing.T, h *lock.Held) context.Context { return h.Context() },
		"made of the lock's own": func(t *testing.T, h *lock.Held) context.Context {
			ctx, cancel := context.WithCancel(h.Context())
			t.Cleanup(cancel)
			return ctx
		},
	} {
		t.Run(what, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
				held := locked(t, newMutex(t, store))
				require.NoError(t, held.Unlock(ended(t, held)))
				vacant(t, store)
			})
		})
	}
}

func TestUnlockTellsThatTheStoreIsDownAndCanBeCalledAgain(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		held := locked(t, m)
		faults.On(kvfault.Delete).Fail(errDown)
		err := held.Unlock(t.Context())
		require.ErrorIs(t, err, lock.ErrUnavailable)
		require.ErrorIs(t, err, errDown)
		require.NotErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, held.Err(), lock.ErrUnlocked, "given up all the same")
		_, err = m.TryLock(t.Context())
		require.ErrorIs(t, err, lock.ErrHeld, "its record has yet to fade")

		faults.On(kvfault.Delete).DropRequests()
		began := time.Now()
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrUnavailable)
		require.LessOrEqual(t, time.Since(began), ttl/3, "it takes no longer")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		require.ErrorIs(t, held.Unlock(ctx), lock.ErrUnavailable)
		require.LessOrEqual(t, time.Since(began), time.Second, "nor than it may")

		faults.Heal() // before the record fades: then there would be nothing to free
		require.NoError(t, held.Unlock(t.Context()))
		vacant(t, store)
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrMisuse)
		require.NoError(t, locked(t, m).Unlock(t.Context()))
	})
}

func TestAnUnlockedLockIsFreedOnlyByItsOwnRecord(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		held := locked(t, newMutex(t, faults.Store))
		faults.On(kvfault.Delete).Fail(errDown)
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrUnavailable)
		faults.Heal()
		other := locked(t, newMutex(t, store)) // when the record has faded
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, other.Err())
		require.NoError(t, other.Unlock(t.Context()), "it was not removed")
	})
}

func TestDoKeepsTheLockUntilTheWorkHasStopped(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		shutdown := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		var token uint64
		err := newMutex(t, store).Do(ctx, func(ctx context.Context, held *lock.Held) error {
			token = held.Token()
			cancel(shutdown)
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), shutdown)
			time.Sleep(5 * ttl) // it takes its time
			require.NoError(t, held.Err(), "it is held as long as the work runs")
			rec, err := store.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, token, rec.Token)
			return nil
		})
		require.NoError(t, err, "the work was done")
		vacant(t, store)
		err = newMutex(t, store).Do(ctx, func(context.Context, *lock.Held) error { panic("not called") })
		require.ErrorIs(t, err, shutdown)
	})
}

func TestDoTellsTheWorkThatTheLockIsLost(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		failed := errors.New("half done")
		err := newMutex(t, store).Do(t.Context(), func(ctx context.Context, held *lock.Held) error {
			require.NoError(t, ctx.Err())
			store.Remove(name)
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
			require.ErrorIs(t, context.Cause(ctx), lock.ErrLost)
			return failed
		})
		require.ErrorIs(t, err, lock.ErrLost)
		require.ErrorIs(t, err, failed)
		err = newMutex(t, store).Do(t.Context(), func(context.Context, *lock.Held) error {
			store.Remove(name)
			time.Sleep(ttl)
			return nil
		})
		require.ErrorIs(t, err, lock.ErrLost, "though the work noticed nothing")
	})
}

func TestDoUnlocksAfterAnErrorAndAPanic(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		m := newMutex(t, store)
		failed := errors.New("disk full")
		require.ErrorIs(t, m.Do(t.Context(), func(context.Context, *lock.Held) error { return failed }), failed)
		vacant(t, store)
		require.Panics(t, func() {
			_ = m.Do(t.Context(), func(context.Context, *lock.Held) error { panic("a mistake in the work") })
		})
		vacant(t, store)
		require.NoError(t, m.Do(t.Context(), func(context.Context, *lock.Held) error { return nil }))
		err := m.Do(t.Context(), func(ctx context.Context, held *lock.Held) error { return held.Unlock(ctx) })
		require.ErrorIs(t, err, lock.ErrMisuse, "Do unlocks")
	})
}

// The work wakes at the very instant at which trust runs out, perhaps before the
// timer that ends the term has been served.
func TestTheContextOfDoAsksTheClock(t *testing.T) {
	inFakeTime(t, func(t *testing.T, _ *memkv.Store, faults *kvfault.Link) {
		faults.On(kvfault.Refresh).Fail(errDown)
		for range 100 {
			_ = newMutex(t, faults.Store).Do(t.Context(), func(ctx context.Context, held *lock.Held) error {
				for left := held.Remaining(); left > 0; left = held.Remaining() { // by two clocks
					time.Sleep(left)
				}
				require.Error(t, ctx.Err())
				require.ErrorIs(t, context.Cause(ctx), lock.ErrLost)
				return nil
			})
		}
	})
}
