package sqlkv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// An overdue context has not ended yet, though its deadline has passed.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

func TestAClientThatIsAheadOfTheDeadlineDoesNotHideIt(t *testing.T) {
	why := errors.New("its time is up")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	timeout := errors.New("i/o timeout")
	_, err := (&table{}).outcome(overdue{ctx}, "refresh", "safe", kv.Record{}, timeout)
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, timeout)
}
