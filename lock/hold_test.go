package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/lock"
)

const hold = time.Minute

// named returns a lock with an ID, and perhaps a hold.
func named(t *testing.T, store kv.Store, id string, hold time.Duration) *lock.Mutex {
	t.Helper()
	m, err := lock.New(store, name, &lock.Options{ID: id, TTL: ttl, Hold: hold})
	require.NoError(t, err)
	return m
}

func TestAnUnlockedLockStaysClosedForItsHold(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		a, b := named(t, store, "a", hold), named(t, store, "b", hold)
		held := locked(t, a)
		began := time.Now()
		require.NoError(t, held.Unlock(t.Context()))
		for _, m := range []*lock.Mutex{a, b} {
			_, err := m.TryLock(t.Context())
			require.ErrorIs(t, err, lock.ErrHeld)
			require.ErrorContains(t, err, `"a" has closed the election until about `)
		}
		ctx, cancel := context.WithTimeout(t.Context(), hold/2)
		defer cancel()
		_, err := b.Lock(ctx)
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `"a" has closed the election until about `)
		vacant(t, store)

		next := locked(t, b)
		require.GreaterOrEqual(t, time.Since(began), hold)
		require.NoError(t, next.Unlock(t.Context()))
	})
}

func TestErrorsOfALockNameItsHolder(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		held := locked(t, named(t, store, "host-7", 0))
		b := named(t, store, "b", 0)
		_, err := b.TryLock(t.Context())
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorContains(t, err, `leader "host-7", token `)
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err = b.Lock(ctx)
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorContains(t, err, `leader "host-7", token `)
		require.NoError(t, held.Unlock(t.Context()))

		store.Put(name, "some script")
		synctest.Wait()
		_, err = b.TryLock(t.Context())
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorContains(t, err, `with the value "some script"`)
	})
}
