package ctxend_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/ctxend"
)

// An overdue context has not ended yet, though its deadline has passed.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

func TestAContextWhoseDeadlineHasPassedIsAboutToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("its time is up")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		require.NoError(t, ctxend.Cause(ctx))
		require.Equal(t, why, ctxend.Cause(overdue{ctx}))
		require.Equal(t, why, ctxend.Cause(ctx))
	})
}

// As after the wall clock was set forward, where the deadline is a time of that clock.
func TestAContextThatGoesOnAfterItsDeadlineIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, ctxend.Cause(overdue{t.Context()}))
		require.LessOrEqual(t, time.Since(began), time.Second)
	})
}

func TestAnErrorTellsOfTheEndOfItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	timeout, why := errors.New("i/o timeout"), errors.New("its time is up")
	require.Equal(t, timeout, ctxend.Wrap(ctx, timeout))
	cancel(why)
	require.EqualError(t, ctxend.Wrap(ctx, timeout), "its time is up (i/o timeout)")
	require.ErrorIs(t, ctxend.Wrap(ctx, timeout), timeout)
	require.Equal(t, why, ctxend.Wrap(ctx, why))
}

func TestAContextBeforeItsDeadlineHasNotEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	require.NoError(t, ctxend.Cause(ctx))
	cancel()
	require.Equal(t, context.Canceled, ctxend.Cause(ctx))
}
