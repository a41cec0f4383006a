package paxoskv_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/kv"
)

// restart restarts all members at once, and waits until they vote again.
func (c *cluster) restart() {
	for i := range c.members {
		require.NoError(c, c.members[i].Close())
		c.start(i)
	}
	time.Sleep(c.members[0].Quarantined())
}

func TestTokensFollowTheWallClockWhereNothingElseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, paxoskv.Options{MaxTTL: time.Second})
		last := uint64(0)
		for range 3 {
			rec, err := c.members[0].Create(t.Context(), "s", kv.Record{Signature: "a", TTL: time.Second})
			require.NoError(t, err)
			require.Greater(t, rec.Token, last)
			last = rec.Token
			c.restart()
		}
	})
}

func TestAPromiseThatIsNotOnDiskIsNotGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, paxoskv.Options{MaxTTL: time.Second})
		c.dirs = []string{t.TempDir()}
		c.restart()
		require.NoError(t, os.RemoveAll(c.dirs[0]))
		time.Sleep(time.Minute) // what the file covers is used up
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.members[0].Create(ctx, "s", kv.Record{Signature: "a", TTL: time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, os.Mkdir(c.dirs[0], 0o700))
		_, err = c.members[0].Create(t.Context(), "s", kv.Record{Signature: "a", TTL: time.Second})
		require.NoError(t, err)
	})
}

func TestNamesThatNobodyUsesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, paxoskv.Options{MaxTTL: time.Second})
		s := c.members[0]
		for i := range 100 {
			_, err := s.Create(t.Context(), fmt.Sprint("s", i), kv.Record{Signature: "a", TTL: time.Second})
			require.NoError(t, err)
		}
		require.Equal(t, 100, s.Known())
		time.Sleep(time.Minute)
		_, err := s.Create(t.Context(), "another", kv.Record{Signature: "a", TTL: time.Second})
		require.NoError(t, err)
		require.Equal(t, 1, s.Known())
	})
}
