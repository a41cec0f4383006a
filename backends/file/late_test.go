package filekv

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// A sleeper is a context that puts whoever looks at it for the nth time to
// sleep, as a scheduler may.
type sleeper struct {
	context.Context
	n     atomic.Int64
	sleep time.Duration
}

func (s *sleeper) Err() error {
	if s.n.Add(-1) == 0 {
		time.Sleep(s.sleep)
	}
	return s.Context.Err()
}

func (s *sleeper) slept() bool { return s.n.Load() <= 0 }

// asleep calls op with contexts that make it sleep beyond ttl at one place after
// the other, and requires that each time it had no effect.
func asleep(t *testing.T, ttl time.Duration, op func(ctx context.Context, s *Store, rec kv.Record) error) {
	t.Helper()
	for n := int64(1); ; n++ {
		require.Less(t, n, int64(50))
		s, other := pair(t)
		rec, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: ttl})
		require.NoError(t, err)
		ctx := &sleeper{Context: t.Context(), sleep: ttl + ttl/4}
		ctx.n.Store(n)
		err = op(ctx, s, rec)
		if !ctx.slept() {
			require.Greater(t, n, int64(2), "it looks at its context at the beginning and before it writes")
			return
		}
		require.ErrorIs(t, err, kv.ErrStale, "asleep at look %d", n)
		_, err = other.Get(t.Context(), "n")
		require.ErrorIs(t, err, kv.ErrVacant, "asleep at look %d", n)
	}
}

func TestARefreshThatFallsAsleepBringsNothingBack(t *testing.T) {
	asleep(t, 200*time.Millisecond, func(ctx context.Context, s *Store, rec kv.Record) error {
		_, err := s.Refresh(ctx, "n", rec)
		return err
	})
}

func TestAHandOverThatFallsAsleepBringsNothingBack(t *testing.T) {
	asleep(t, 200*time.Millisecond, func(ctx context.Context, s *Store, rec kv.Record) error {
		_, err := s.Swap(ctx, "n", rec, kv.Record{Signature: "heir", TTL: long})
		return err
	})
}

func TestADeleteThatFallsAsleepDeletesNothing(t *testing.T) {
	asleep(t, 200*time.Millisecond, func(ctx context.Context, s *Store, rec kv.Record) error {
		return s.Delete(ctx, "n", rec)
	})
}

// A deadline is the start of the call and the TTL, no less and no more.
func TestDeadlinesCountFromTheStartOfTheCall(t *testing.T) {
	s, _ := pair(t)
	var rec kv.Record
	for what, op := range []func() (kv.Record, error){
		func() (kv.Record, error) { return s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long}) },
		func() (kv.Record, error) { return s.Refresh(t.Context(), "n", rec) },
		func() (kv.Record, error) {
			return s.Swap(t.Context(), "n", rec, kv.Record{Signature: "t", TTL: 2 * long})
		},
		func() (kv.Record, error) { return s.Refresh(t.Context(), "n", rec) },
	} {
		before, err := sinceBoot()
		require.NoError(t, err)
		rec, err = op()
		require.NoError(t, err)
		after, err := sinceBoot()
		require.NoError(t, err)
		require.WithinRange(t, s.deadline(t), at(before+rec.TTL), at(after+rec.TTL), "operation %d", what)
	}
	before := s.deadline(t)
	_, err := s.Swap(t.Context(), "n", rec, kv.Record{Signature: "t", Value: "published"})
	require.NoError(t, err)
	require.Equal(t, before, s.deadline(t), "publishing is no refresh")
}

// deadline returns the deadline of the record in the safe n.
func (s *Store) deadline(t *testing.T) time.Time {
	t.Helper()
	cur, err := s.look(s.folderOf("n"))
	require.NoError(t, err)
	return at(cur.deadline)
}

// at puts a reading of sinceBoot into a form that can be compared.
func at(d time.Duration) time.Time { return time.Unix(0, int64(d)) }
