package spare_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/spare"
)

var errDenied = errors.New("denied")

func nothing() error { return nil }

// granted has a lease granted for a use, and reports whether that was asked.
func granted(t *testing.T, l *spare.Leases[string], use, id string) (asked bool) {
	require.NoError(t, l.Provide(t.Context(), use, func(context.Context) (spare.Lease, error) {
		asked = true
		return spare.Lease{ID: id, TTL: time.Minute, Since: time.Now()}, nil
	}, nothing))
	return asked
}

// taken takes the lease for a use.
func taken(t *testing.T, l *spare.Leases[string], use string) string {
	one, err := l.Take(t.Context(), use, func(context.Context, string) error { return nil }, nothing)
	require.NoError(t, err)
	return one.ID
}

func TestALeaseIsTakenOnceByItsUse(t *testing.T) {
	var l spare.Leases[string]
	require.Empty(t, taken(t, &l, "a"))
	require.True(t, granted(t, &l, "a", "1"))
	require.False(t, granted(t, &l, "a", "2"), "one is ready")
	require.Empty(t, taken(t, &l, "b"))
	require.Equal(t, "1", taken(t, &l, "a"))
	require.Empty(t, taken(t, &l, "a"))
}

func TestALeaseThatMayHaveFadedIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l spare.Leases[string]
		granted(t, &l, "a", "1")
		time.Sleep(30 * time.Second)
		require.True(t, granted(t, &l, "a", "2"), "the first one fades before long")
		time.Sleep(59 * time.Second)
		one, err := l.Take(t.Context(), "a", func(context.Context, string) error { return nil }, nothing)
		require.NoError(t, err)
		require.Equal(t, "2", one.ID)
		granted(t, &l, "a", "3")
		time.Sleep(time.Minute)
		require.Empty(t, taken(t, &l, "a"))
	})
}

func TestALeaseThatIsDeniedIsNotTaken(t *testing.T) {
	var l spare.Leases[string]
	granted(t, &l, "a", "1")
	one, err := l.Take(t.Context(), "a", func(context.Context, string) error { return errDenied }, nothing)
	require.NoError(t, err)
	require.Empty(t, one.ID)
	require.Empty(t, taken(t, &l, "a"))
}

func TestWhatIsDoneDecidesWhateverBecomesOfTheLease(t *testing.T) {
	var l spare.Leases[string]
	done := errors.New("done")
	err := l.Provide(t.Context(), "a", func(context.Context) (spare.Lease, error) { return spare.Lease{}, errDenied }, func() error { return done })
	require.ErrorIs(t, err, done)
	granted(t, &l, "a", "1")
	_, err = l.Take(t.Context(), "a", func(context.Context, string) error { return nil }, func() error { return done })
	require.ErrorIs(t, err, done)
}

func TestNotAllLeasesAreKept(t *testing.T) {
	var l spare.Leases[int]
	for i := range 1000 {
		require.NoError(t, l.Provide(t.Context(), i, func(context.Context) (spare.Lease, error) {
			return spare.Lease{ID: "1", TTL: time.Hour, Since: time.Now()}, nil
		}, nothing))
	}
	kept := 0
	for i := range 1000 {
		one, err := l.Take(t.Context(), i, func(context.Context, string) error { return nil }, nothing)
		require.NoError(t, err)
		if one.ID != "" {
			kept++
		}
	}
	require.LessOrEqual(t, kept, 64)
	require.Positive(t, kept)
}

// The delete is answered, and the grant is not.
func TestNobodyWaitsLongForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l spare.Leases[string]
		second := func() error {
			time.Sleep(time.Second)
			return nil
		}
		began := time.Now()
		require.NoError(t, l.Provide(t.Context(), "a", func(ctx context.Context) (spare.Lease, error) {
			<-ctx.Done()
			return spare.Lease{}, ctx.Err()
		}, second))
		require.Less(t, time.Since(began), 3*time.Second)

		granted(t, &l, "a", "1")
		began = time.Now()
		one, err := l.Take(t.Context(), "a", func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}, second)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 3*time.Second)
		require.Empty(t, one.ID, "nobody knows whether it lives")
	})
}
