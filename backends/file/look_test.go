package filekv

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// A leader unlocks its life file as soon as it has handed over. A reader sees the leader or
// the heir at every moment, never a vacant safe.
func TestNobodyFindsASafeVacantThatIsHandedOver(t *testing.T) {
	const handOvers = 100
	s, other := pair(t)
	reader, err := New(s.dir, nil)
	require.NoError(t, err)
	rec, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for ctx.Err() == nil {
				if _, err := reader.Get(t.Context(), "n"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range handOvers {
		own, err := other.Create(t.Context(), "n:heir", kv.Record{Signature: rand.Text(), TTL: long})
		require.NoError(t, err)
		rec, err = s.Swap(t.Context(), "n", rec, own)
		require.NoError(t, err)
		require.False(t, s.hasLife(), "hand-over %d: the leader has given up its life", i)
		require.NoError(t, other.Delete(t.Context(), "n:heir", own))
		s, other = other, s
	}
	stop()
	looking.Wait()
}
