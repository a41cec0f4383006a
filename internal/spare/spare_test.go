package spare_test

import (
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
	require.NoError(t, l.Provide(use, func() (spare.Lease, error) {
		asked = true
		return spare.Lease{ID: id, TTL: time.Minute, Since: time.Now()}, nil
	}, nothing))
	return asked
}

// taken takes the lease for a use.
func taken(t *testing.T, l *spare.Leases[string], use string) string {
	one, err := l.Take(use, func(string) error { return nil }, nothing)
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
		one, err := l.Take("a", func(string) error { return nil }, nothing)
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
	one, err := l.Take("a", func(string) error { return errDenied }, nothing)
	require.NoError(t, err)
	require.Empty(t, one.ID)
	require.Empty(t, taken(t, &l, "a"))
}

func TestWhatIsDoneDecidesWhateverBecomesOfTheLease(t *testing.T) {
	var l spare.Leases[string]
	done := errors.New("done")
	err := l.Provide("a", func() (spare.Lease, error) { return spare.Lease{}, errDenied }, func() error { return done })
	require.ErrorIs(t, err, done)
	granted(t, &l, "a", "1")
	_, err = l.Take("a", func(string) error { return nil }, func() error { return done })
	require.ErrorIs(t, err, done)
}

func TestNotAllLeasesAreKept(t *testing.T) {
	var l spare.Leases[int]
	for i := range 1000 {
		require.NoError(t, l.Provide(i, func() (spare.Lease, error) {
			return spare.Lease{ID: "1", TTL: time.Hour, Since: time.Now()}, nil
		}, nothing))
	}
	kept := 0
	for i := range 1000 {
		one, err := l.Take(i, func(string) error { return nil }, nothing)
		require.NoError(t, err)
		if one.ID != "" {
			kept++
		}
	}
	require.LessOrEqual(t, kept, 64)
	require.Positive(t, kept)
}
