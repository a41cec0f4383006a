package observer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/observer/memregister"
	"github.com/electkv/election/kv"
)

func TestAClockThatIsSetForwardJudgesNothing(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		b.leapt.Store(int64(5 * time.Hour))
		b.refused("b")
		time.Sleep(ttl - 1)
		b.sees(rec)
		time.Sleep(1)
		b.create("b")
	})
}

// The clock that stands still while the host is suspended is behind afterwards.
func TestATimeSpentAsleepIsNotCounted(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		time.Sleep(8 * time.Second)
		b.slept.Store(int64(7 * time.Second))
		time.Sleep(ttl - time.Second - 1)
		b.sees(rec)
		time.Sleep(1)
		b.seesVacancy()
	})
}

func TestAClockThatIsSetBackHoldsUpNobodyForLong(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		b.leapt.Store(int64(-5 * time.Hour))
		time.Sleep(ttl - 1)
		b.sees(rec) // and time starts anew
		time.Sleep(ttl - 1)
		b.sees(rec)
		time.Sleep(1)
		b.create("b")
	})
}

// The host's own clocks, in real time.
func TestTheClocksOfTheHostJudgeToo(t *testing.T) {
	reg := memregister.New()
	a, b := observer.New(reg, nil), observer.New(reg, &observer.Options{})
	rec, err := a.Create(t.Context(), "safe", kv.Record{Signature: "a", TTL: 50 * time.Millisecond})
	require.NoError(t, err)
	start := time.Now()
	_, err = b.Get(t.Context(), "safe")
	require.NoError(t, err)
	for got, err := range b.Watch(t.Context(), "safe") {
		if err != nil {
			require.ErrorIs(t, err, kv.ErrVacant)
			break
		}
		require.Equal(t, rec, got)
	}
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	_, err = b.Create(t.Context(), "safe", kv.Record{Signature: "b", TTL: time.Hour})
	require.NoError(t, err)
}
