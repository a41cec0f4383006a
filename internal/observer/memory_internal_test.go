package observer

import (
	"context"
	"fmt"
	"iter"
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

func TestAnEarlierRevisionIsNotJudgedByTheTimeOfALaterOne(t *testing.T) {
	now := time.Duration(0)
	m := newMemory(func() (mono, boot time.Duration) { return now, now })
	one := kv.Record{Signature: "s", Token: 1, Revision: 1, TTL: time.Second}
	two, late := one, one
	two.Revision, late.Revision = 2, 3
	m.saw("name", one)
	now = time.Hour
	require.LessOrEqual(t, m.left("name", one), time.Duration(0))
	m.saw("name", two)
	require.Equal(t, time.Second, m.left("name", two))
	now += time.Minute
	require.LessOrEqual(t, m.left("name", two), time.Duration(0))
	require.Equal(t, time.Second, m.left("name", one), "it is out of date")
	require.Equal(t, time.Second, m.left("name", late), "it was not seen yet")
	m.saw("name", one)
	require.Equal(t, time.Second, m.left("name", one), "a late answer starts the time anew")
}

// vacant is a register that holds nothing.
type vacant struct{ Register }

func (vacant) Get(context.Context, string) (kv.Record, error) { return kv.Record{}, kv.ErrVacant }

func (vacant) Watch(ctx context.Context, _ string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if yield(kv.Record{}, kv.ErrVacant) {
			<-ctx.Done()
			yield(kv.Record{}, ctx.Err())
		}
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	rec := kv.Record{Signature: "s", Token: 1, Revision: 1, TTL: time.Second}
	s := New(vacant{}, nil)
	s.memory.saw("name", rec)
	_, err := s.Get(t.Context(), "name")
	require.ErrorIs(t, err, kv.ErrVacant)
	require.Empty(t, s.memory.seen)
	s.memory.saw("name", rec)
	for _, err := range s.Watch(t.Context(), "name") {
		require.ErrorIs(t, err, kv.ErrVacant)
		break
	}
	require.Empty(t, s.memory.seen)
	require.Empty(t, s.memory.watched)
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
