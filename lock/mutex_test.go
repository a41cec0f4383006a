package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/lock"
)

const (
	name = "reports"
	ttl  = 9 * time.Second
)

var errDown = errors.New("connection refused")

// newMutex returns a lock that others share through the store.
func newMutex(t *testing.T, store kv.Store) *lock.Mutex {
	t.Helper()
	m, err := lock.New(store, name, &lock.Options{TTL: ttl})
	require.NoError(t, err)
	return m
}

// locked returns the lock, held.
func locked(t *testing.T, m *lock.Mutex) *lock.Held {
	t.Helper()
	held, err := m.Lock(t.Context())
	require.NoError(t, err)
	return held
}

// vacant requires that nobody has the lock.
func vacant(t *testing.T, store kv.Store) {
	t.Helper()
	_, err := store.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// inFakeTime runs a test in a bubble, with a store and its faults. The bubble
// ends only when all that was started has ended.
func inFakeTime(t *testing.T, test func(t *testing.T, store *memkv.Store, faults *kvfault.Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		test(t, store, kvfault.Wrap(store))
	})
}

func TestALockWaitsForTheOtherOneAndHasALargerToken(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		first := locked(t, newMutex(t, store))
		const work = 10 * ttl
		time.AfterFunc(work, func() { require.NoError(t, first.Unlock(t.Context())) })
		began := time.Now()
		second := locked(t, newMutex(t, store))
		require.GreaterOrEqual(t, time.Since(began), work)
		require.Less(t, time.Since(began), work+time.Second, "told by the store, at once")
		require.Greater(t, second.Token(), first.Token())
		require.ErrorIs(t, first.Err(), lock.ErrUnlocked)
		require.ErrorIs(t, context.Cause(first.Context()), lock.ErrUnlocked)
		require.NoError(t, second.Unlock(t.Context()))
		vacant(t, store)
	})
}

func TestTheContextOfLockBoundsTheWaitingAlone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		type key struct{}
		for what, obtain := range map[string]func(*lock.Mutex, context.Context) (*lock.Held, error){
			"Lock": (*lock.Mutex).Lock, "TryLock": (*lock.Mutex).TryLock,
		} {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, what), time.Second)
			held, err := obtain(newMutex(t, store), ctx)
			require.NoError(t, err)
			cancel()
			for range 10 {
				time.Sleep(ttl)
				require.NoError(t, held.Err(), what)
				require.NoError(t, held.Context().Err(), what)
				require.Greater(t, held.Remaining(), ttl/2)
				require.Less(t, held.Remaining(), ttl)
			}
			require.Equal(t, what, held.Context().Value(key{}))
			rec, err := store.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, rec, held.Record())
			called, named := held.NamedRecord()
			require.Equal(t, name, called)
			require.Equal(t, rec, named)
			require.NoError(t, held.Unlock(t.Context()))
			require.Zero(t, held.Remaining())
		}
	})
}

func TestTryLockWaitsForNobody(t *testing.T) {
	for what, occupy := range map[string]func(t *testing.T, m *lock.Mutex, store *memkv.Store){
		"another process": func(t *testing.T, _ *lock.Mutex, store *memkv.Store) {
			held := locked(t, newMutex(t, store))
			t.Cleanup(func() { require.NoError(t, held.Unlock(t.Context())) })
		},
		"another program": func(_ *testing.T, _ *lock.Mutex, store *memkv.Store) { store.Put(name, "host-7") },
		"another goroutine": func(t *testing.T, m *lock.Mutex, _ *memkv.Store) {
			held := locked(t, m)
			t.Cleanup(func() { require.NoError(t, held.Unlock(t.Context())) })
		},
		"another goroutine, which waits": func(t *testing.T, m *lock.Mutex, store *memkv.Store) {
			store.Put(name, "host-7")
			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() { _, _ = m.Lock(ctx) })
			synctest.Wait()
			t.Cleanup(func() { cancel(); waiting.Wait() })
		},
	} {
		t.Run(what, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
				m := newMutex(t, store)
				occupy(t, m, store)
				began := time.Now()
				held, err := m.TryLock(t.Context())
				require.Nil(t, held)
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NotErrorIs(t, err, lock.ErrUnavailable)
				require.Zero(t, time.Since(began))
			})
		})
	}
}

func TestTryLockTellsThatTheStoreIsDown(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		for what, fault := range map[string]func(){
			"refuses":      func() { faults.On().Fail(errDown) },
			"breaks off":   func() { faults.On(kvfault.Create).FailReplies(errDown) },
			"is cut off":   func() { faults.On().DropRequests() },
			"is not heard": func() { faults.On(kvfault.Create).DropReplies() },
		} {
			fault()
			began := time.Now()
			held, err := m.TryLock(t.Context())
			require.Nil(t, held)
			require.ErrorIs(t, err, lock.ErrUnavailable, what)
			require.NotErrorIs(t, err, lock.ErrHeld, what)
			require.True(t, errors.Is(err, errDown) || errors.Is(err, context.DeadlineExceeded), what)
			require.LessOrEqual(t, time.Since(began), 2*ttl/3)
			faults.Heal()
			held, err = m.TryLock(t.Context())
			require.NoError(t, err, "%s: nothing is left, here or there", what)
			require.NoError(t, held.Unlock(t.Context()))
		}
		faults.On().DropRequests()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.TryLock(ctx)
		require.ErrorIs(t, err, lock.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		calls := faults.Calls(kvfault.Create)
		_, err = m.TryLock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, lock.ErrUnavailable, "it was not asked")
		require.Equal(t, calls, faults.Calls(kvfault.Create))
		faults.Heal()
		vacant(t, store)
	})
}

func TestLockGoesOnTryingWhileTheStoreIsDown(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		faults.On().Fail(errDown)
		time.AfterFunc(5*ttl, faults.Heal)
		began := time.Now()
		held := locked(t, newMutex(t, faults.Store))
		require.GreaterOrEqual(t, time.Since(began), 5*ttl)
		require.NoError(t, held.Unlock(t.Context()))
		vacant(t, store)
	})
}

func TestLockTellsWhatItHasLearnedWhenItsContextEnds(t *testing.T) {
	shutdown := errors.New("shutdown")
	occupied := func(s *memkv.Store, _ *kvfault.Link) { s.Put(name, "host-7") }
	for what, c := range map[string]struct {
		before, meanwhile func(*memkv.Store, *kvfault.Link)
		want, not         []error
	}{
		"held": {
			before: occupied,
			want:   []error{lock.ErrHeld}, not: []error{lock.ErrUnavailable},
		},
		"down": {
			before: func(_ *memkv.Store, f *kvfault.Link) { f.On().Fail(errDown) },
			want:   []error{lock.ErrUnavailable, errDown}, not: []error{lock.ErrHeld},
		},
		"silent": {
			before: func(_ *memkv.Store, f *kvfault.Link) { f.On().DropRequests() },
			want:   []error{lock.ErrUnavailable}, not: []error{lock.ErrHeld},
		},
		"held, then down": {
			before:    occupied,
			meanwhile: func(_ *memkv.Store, f *kvfault.Link) { f.On().Fail(errDown) },
			want:      []error{lock.ErrHeld, errDown}, not: []error{lock.ErrUnavailable},
		},
		"down, then held": {
			before: func(s *memkv.Store, f *kvfault.Link) {
				occupied(s, f)
				f.On().Fail(errDown)
			},
			meanwhile: func(_ *memkv.Store, f *kvfault.Link) { f.Heal() },
			want:      []error{lock.ErrHeld}, not: []error{lock.ErrUnavailable, errDown},
		},
		"closed by the store": {
			before: func(_ *memkv.Store, f *kvfault.Link) { f.On(kvfault.Create).Fail(kv.ErrHeld) },
			want:   []error{lock.ErrHeld}, not: []error{lock.ErrUnavailable},
		},
	} {
		t.Run(what, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
				c.before(store, faults)
				if c.meanwhile != nil {
					time.AfterFunc(ttl, func() { c.meanwhile(store, faults) })
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(5*ttl, func() { cancel(shutdown) })
				began := time.Now()
				held, err := newMutex(t, faults.Store).Lock(ctx)
				require.Nil(t, held)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, shutdown, "the cause as well")
				for _, want := range c.want {
					require.ErrorIs(t, err, want)
				}
				for _, not := range c.not {
					require.NotErrorIs(t, err, not)
				}
				require.GreaterOrEqual(t, time.Since(began), 5*ttl)
				require.LessOrEqual(t, time.Since(began), 5*ttl+ttl/3)
			})
		})
	}
}

func TestGoroutinesThatUseOneMutexTakeTurns(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		var inside, runs int // for the race detector to watch
		var last uint64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				held := locked(t, m)
				inside++
				require.Equal(t, 1, inside)
				require.Greater(t, held.Token(), last)
				last = held.Token()
				time.Sleep(ttl / 3)
				inside--
				runs++
				require.NoError(t, held.Unlock(t.Context()))
			})
		}
		all.Wait()
		require.Equal(t, 20, runs)
		require.Equal(t, 20, faults.Calls(kvfault.Watch), "each term watches, and nobody who waits for another goroutine")
		vacant(t, store)
	})
}

func TestAGoroutineWaitsForOneThatHasLostTheLockAndNotStopped(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		m := newMutex(t, store)
		first := locked(t, m)
		var stopped atomic.Bool
		var second sync.WaitGroup
		second.Go(func() {
			held := locked(t, m)
			require.True(t, stopped.Load(), "the work of the first still runs")
			require.NoError(t, held.Unlock(t.Context()))
		})
		store.Remove(name)
		<-first.Context().Done()
		require.ErrorIs(t, first.Err(), lock.ErrLost)
		time.Sleep(5 * ttl)
		other := locked(t, newMutex(t, store)) // another process may have it, since it was lost
		require.NoError(t, other.Unlock(t.Context()))
		stopped.Store(true)
		require.ErrorIs(t, first.Unlock(t.Context()), lock.ErrLost)
		second.Wait()
	})
}

func TestAGoroutineThatLocksWhatItHoldsIsToldWhyItWaited(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		held := locked(t, m)
		asked := faults.Calls(kvfault.Create)
		ctx, cancel := context.WithTimeout(t.Context(), 3*ttl)
		defer cancel()
		_, err := m.Lock(ctx)
		require.ErrorIs(t, err, lock.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "another goroutine that uses the same Mutex")
		require.Equal(t, asked, faults.Calls(kvfault.Create), "the store is not asked")
		require.NoError(t, held.Err(), "the lock is none the worse")
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, locked(t, m).Unlock(t.Context()))
	})
}

func TestWhatTheStoreCanNeverDoIsToldAtOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, _ *memkv.Store, faults *kvfault.Link) {
		m := newMutex(t, faults.Store)
		faults.On(kvfault.Create).Fail(kv.ErrInvalid)
		for range 2 {
			_, err := m.Lock(t.Context())
			require.ErrorIs(t, err, kv.ErrInvalid)
			_, err = m.TryLock(t.Context())
			require.ErrorIs(t, err, kv.ErrInvalid)
			require.NotErrorIs(t, err, lock.ErrUnavailable)
		}
		faults.Heal()
		require.NoError(t, locked(t, m).Unlock(t.Context()), "the turn was passed on")
	})
}

func TestNewTellsWhichArgumentIsWrong(t *testing.T) {
	for want, make := range map[string]func() (*lock.Mutex, error){
		"store is nil":        func() (*lock.Mutex, error) { return lock.New(nil, name, nil) },
		"name is empty":       func() (*lock.Mutex, error) { return lock.New(memkv.New(), "", nil) },
		"TTL -1s is negative": func() (*lock.Mutex, error) { return lock.New(memkv.New(), name, &lock.Options{TTL: -time.Second}) },
		"margin 1ms is too small": func() (*lock.Mutex, error) {
			return lock.New(memkv.New(), name, &lock.Options{Margin: time.Millisecond})
		},
		"ID \"a\\n\" contains": func() (*lock.Mutex, error) { return lock.New(memkv.New(), name, &lock.Options{ID: "a\n"}) },
		"is too long": func() (*lock.Mutex, error) {
			return lock.New(memkv.New(), name, &lock.Options{Value: strings.Repeat("x", 1<<20)})
		},
	} {
		m, err := make()
		require.Nil(t, m)
		require.ErrorContains(t, err, "lock: ")
		require.ErrorContains(t, err, want)
	}
}

func TestTheHolderIsShownLikeALeader(t *testing.T) {
	inFakeTime(t, func(t *testing.T, store *memkv.Store, _ *kvfault.Link) {
		m, err := lock.New(store, name, &lock.Options{ID: "web-1", Value: "10.0.0.1:80"})
		require.NoError(t, err)
		began := time.UnixMilli(time.Now().UnixMilli())
		held := locked(t, m)
		leader, err := election.Current(t.Context(), store, name)
		require.NoError(t, err)
		require.Equal(t, election.Leader{ID: "web-1", Value: "10.0.0.1:80", Token: held.Token(), Since: began}, leader)
		require.NoError(t, held.Unlock(t.Context()))
	})
}

func TestALockThatNewHasNotMadeIsMisuse(t *testing.T) {
	var m lock.Mutex
	_, err := m.Lock(t.Context())
	require.ErrorIs(t, err, lock.ErrMisuse)
	require.ErrorContains(t, err, "New")
	_, err = m.TryLock(t.Context())
	require.ErrorIs(t, err, lock.ErrMisuse)
	require.ErrorIs(t, newMutex(t, memkv.New()).Do(t.Context(), nil), lock.ErrMisuse)
}
