package observer_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/observer/memregister"
	"github.com/electkv/election/kv"
)

// A told is what a watch yielded, and when.
type told struct {
	at  time.Duration
	rec kv.Record
	err error
}

// watch collects what a watch of a host yields, until the test ends.
func watch(t *testing.T, h *host) (all func() []told) {
	start := time.Now()
	ch := make(chan told, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for rec, err := range h.Watch(ctx, "safe") {
			ch <- told{time.Since(start), rec, err}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() (all []told) {
		synctest.Wait()
		for len(ch) > 0 {
			all = append(all, <-ch)
		}
		return all
	}
}

func TestAWatchTellsOfWhatItsTimerJudges(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		all := watch(t, b)
		require.ErrorIs(t, all()[0].err, kv.ErrVacant)
		time.Sleep(time.Second)
		rec := a.create("a")
		time.Sleep(time.Hour)
		got := all()
		require.Len(t, got, 2)
		require.Equal(t, told{time.Second, rec, nil}, got[0])
		require.Equal(t, told{time.Second + ttl, kv.Record{}, kv.ErrVacant}, got[1])
		b.create("b")
		require.NoError(t, b.Delete(t.Context(), "safe", all()[0].rec))
		require.ErrorIs(t, all()[0].err, kv.ErrVacant)
		require.Less(t, reg.Requests(), 10, "an hour passed")
	})
}

func TestAWatchDoesNotTellOfRefreshes(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		rec := a.create("a")
		all := watch(t, b)
		require.Len(t, all(), 1)
		before := reg.Requests()
		for range 100 {
			time.Sleep(ttl / 3)
			a.refresh(rec)
		}
		require.Empty(t, all())
		require.Equal(t, 100, reg.Requests()-before, "no request but the refreshes")
	})
}

func TestAWatchTellsAgainOfARecordThatLives(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		all := watch(t, b)
		time.Sleep(ttl)
		require.Len(t, all(), 2)
		require.NoError(t, delayed(a, rec))
		got := all()
		require.Len(t, got, 1)
		require.Equal(t, rec, got[0].rec)
		time.Sleep(ttl)
		require.ErrorIs(t, all()[0].err, kv.ErrVacant)
	})
}

// The timer runs by another clock than the judge.
func TestAWatchWhoseTimerIsEarlyWaitsOn(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		rec := a.create("a")
		all := watch(t, b)
		time.Sleep(ttl - 1)
		b.slept.Store(int64(3 * time.Second))
		before := reg.Requests()
		time.Sleep(3 * time.Second)
		require.Len(t, all(), 1)
		require.Equal(t, before, reg.Requests())
		b.sees(rec)
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, all()[0].err, kv.ErrVacant)
	})
}

// cut is a register whose watch stops telling, and which may answer nothing else.
type cut struct {
	*memregister.Register
	silent, dead *atomic.Bool
}

func (c cut) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range c.Register.Watch(ctx, name) {
			if (!c.silent.Load() || ctx.Err() != nil) && !yield(rec, err) {
				return
			}
		}
	}
}

func (c cut) Get(ctx context.Context, name string) (kv.Record, error) {
	if c.dead.Load() {
		<-ctx.Done()
		return kv.Record{}, context.Cause(ctx)
	}
	return c.Register.Get(ctx, name)
}

func TestWhoIsCutOffTellsOfNoVacancy(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, _ *host) {
		rec := a.create("a")
		net := cut{reg, new(atomic.Bool), new(atomic.Bool)}
		all := watch(t, newHost(t, net))
		require.Len(t, all(), 1)
		net.silent.Store(true)
		for range 2 {
			time.Sleep(ttl / 3)
			a.refresh(rec)
		}
		net.dead.Store(true)
		time.Sleep(ttl)
		require.Empty(t, all(), "it asks")
		time.Sleep(ttl)
		got := all()
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].err, context.DeadlineExceeded)
		require.NotErrorIs(t, got[0].err, kv.ErrVacant)
	})
}

// The register holds what its watch does not tell of.
func TestAWatchThatIsBehindEnds(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, _ *host) {
		rec := a.create("a")
		net := cut{reg, new(atomic.Bool), new(atomic.Bool)}
		all := watch(t, newHost(t, net))
		require.Len(t, all(), 1)
		net.silent.Store(true)
		for range 9 {
			time.Sleep(ttl / 3)
			a.refresh(rec)
		}
		got := all()
		require.Len(t, got, 1)
		require.ErrorContains(t, got[0].err, "does not tell")
		require.NotErrorIs(t, got[0].err, kv.ErrVacant)
	})
}

func TestALookThatShowsARefreshIsNoVacancy(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, _ *host) {
		rec := a.create("a")
		net := cut{reg, new(atomic.Bool), new(atomic.Bool)}
		all := watch(t, newHost(t, net))
		for range 3 {
			net.silent.Store(true)
			time.Sleep(ttl - 1)
			a.refresh(rec)
			time.Sleep(2)
			net.silent.Store(false)
			for range 10 {
				time.Sleep(ttl / 3)
				a.refresh(rec)
			}
		}
		require.Len(t, all(), 1)
	})
}

// lingering is a register whose watches take a while to end.
type lingering struct {
	*memregister.Register
	open *atomic.Int64
}

func (l lingering) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		l.open.Add(1)
		defer l.open.Add(-1)
		l.Register.Watch(ctx, name)(yield)
		time.Sleep(time.Second)
	}
}

func TestAWatchLeavesNoneOfTheRegisterBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := lingering{memregister.New(), new(atomic.Int64)}
		h := newHost(t, reg)
		for range h.Watch(t.Context(), "safe") {
			require.Equal(t, int64(1), reg.open.Load())
			break
		}
		require.Zero(t, reg.open.Load())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range h.Watch(ctx, "safe") {
			cancel()
		}
		require.Zero(t, reg.open.Load())
	})
}

// broken is a register whose watches end at once.
type broken struct{ *memregister.Register }

var errBroken = errors.New("the stream is broken")

func (broken) Watch(context.Context, string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) { yield(kv.Record{}, errBroken) }
}

func TestAWatchEndsWithTheRegistersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := observer.New(broken{memregister.New()}, nil)
		n := 0
		for _, err := range s.Watch(t.Context(), "safe") {
			n++
			require.ErrorIs(t, err, errBroken)
		}
		require.Equal(t, 1, n)
	})
}
