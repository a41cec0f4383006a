package observer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func still() (mono, boot time.Duration) { return 0, 0 }

func TestWhatNobodyWatchesIsForgotten(t *testing.T) {
	m := newMemory(still)
	m.most = 10
	see := func(name string) {
		m.saw(name, kv.Record{Signature: "s", Token: 1, Revision: 1, TTL: time.Second})
	}
	m.watch("watched")
	m.watch("watched")
	see("watched")
	for i := range 1000 {
		m.recall("name 0") // is of use
		see(fmt.Sprint("name ", i))
		require.LessOrEqual(t, len(m.seen), 11)
	}
	require.Equal(t, len(m.seen), m.order.Len())
	for name, known := range map[string]bool{"watched": true, "name 0": true, "name 1": false, "name 999": true} {
		rec, _ := m.recall(name)
		require.Equal(t, known, rec.Signature != "", name)
	}
	m.unwatch("watched")
	m.unwatch("watched")
	require.Empty(t, m.watched)
	require.LessOrEqual(t, len(m.seen), 10)
	for i := range 1000 {
		m.vacant(fmt.Sprint("name ", i))
	}
	m.vacant("watched")
	require.Empty(t, m.seen)
	require.Zero(t, m.order.Len())
}

// Contents of one token never look alike.
func TestEachContentHasARevisionOfItsOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for token := range uint64(100) {
		for prior := range uint64(1000) {
			n := revision(token, prior)
			require.False(t, seen[n], "token %d, after revision %d", token, prior)
			seen[n] = true
		}
	}
}
