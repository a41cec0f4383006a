package paxoskv_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/kv"
)

// A host that wakes must not take the time that it slept for time that a lease has
// lasted: only one of its clocks says so.
func TestAnAcceptorsHostThatSleptEndsNobodysLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, paxoskv.Options{MaxTTL: 10 * time.Second})
		rec, err := c.members[0].Create(t.Context(), "s", kv.Record{Signature: "a", TTL: 10 * time.Second})
		require.NoError(t, err)
		c.slept.Store(int64(time.Hour))
		got, err := c.members[1].Get(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, rec, got)
		_, err = c.members[2].Create(t.Context(), "s", kv.Record{Signature: "b", TTL: 10 * time.Second})
		require.ErrorIs(t, err, kv.ErrHeld)
		time.Sleep(11 * time.Second)
		_, err = c.members[1].Get(t.Context(), "s")
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}
