package filekv

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// An interruption is a context that does something else when it is looked at for
// the nth time.
type interruption struct {
	context.Context
	n    atomic.Int64
	does func()
}

func (i *interruption) Err() error {
	if i.n.Add(-1) == 0 {
		i.does()
	}
	return i.Context.Err()
}

// A refresh promises its TTL from its own start. One that began before it, and
// comes to write after it, does not take that back.
func TestARefreshThatIsOvertakenShortensNoLife(t *testing.T) {
	for n := int64(1); ; n++ {
		require.Less(t, n, int64(50))
		s, other := pair(t)
		rec, err := s.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
		require.NoError(t, err)
		var promised time.Duration
		slow := &interruption{Context: t.Context(), does: func() {
			time.Sleep(time.Millisecond)
			start, err := sinceBoot()
			require.NoError(t, err)
			_, err = other.Refresh(t.Context(), "n", rec)
			require.NoError(t, err)
			promised = start + rec.TTL
		}}
		slow.n.Store(n)
		_, err = s.Refresh(slow, "n", rec)
		require.NoError(t, err)
		if promised == 0 {
			require.Greater(t, n, int64(2), "it looks at its context at the beginning and before it writes")
			return
		}
		require.False(t, s.deadline(t).Before(at(promised)), "overtaken at look %d", n)
	}
}
