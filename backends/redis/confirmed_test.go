package rediskv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// Each refresh is as good as a look, which would come when the record was due to expire.
// When the refreshes end, the vacancy is seen as ever.
func TestAWatchDoesNotLookForItselfWhileTheRecordIsRefreshed(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	for name, refresh := range map[string]func(store *rediskv.Store, r kv.Held) error{
		"alone": func(store *rediskv.Store, r kv.Held) error {
			_, err := store.Refresh(b.ctx, r.Name, r.Record)
			return err
		},
		"with others": func(store *rediskv.Store, r kv.Held) (err error) {
			store.RefreshAll(b.ctx, []kv.Held{r}, func(_ int, _ kv.Record, told error) { err = told })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ttl := 2 * time.Second
			for try := 1; !b.looksOnlyWhenRefreshesEnd(t, ttl, refresh); try++ {
				require.Less(t, try, 10, "this machine is too busy to refresh a record in time")
				ttl = min(2*ttl, 16*time.Second)
			}
		})
	}
}

// looksOnlyWhenRefreshesEnd reports whether each refresh was in time: long before the record was due
// to expire, and before the watch looks for itself whatever it is told, half a TTL after a look at most.
func (b *bench) looksOnlyWhenRefreshesEnd(t *testing.T, ttl time.Duration, refresh func(*rediskv.Store, kv.Held) error) bool {
	t.Helper()
	const n = 12
	apart, late := ttl*3/20, ttl*3/10
	var sent requests
	store := rediskv.New(sent.count(dial(t, b.addr)), &rediskv.Options{Backstop: ttl / 2})
	begun := time.Now()
	r := b.hold(1, ttl)[0]
	states := make(chan error, 10)
	stop := store.Follow(r.Name, func(_ kv.Record, err error) { states <- err })
	defer stop()
	first := <-states
	err := refresh(store, r) // which may have to teach the server the script
	if time.Since(begun) >= ttl*9/10 {
		return false
	}
	require.NoError(t, first)
	before, asked := sent.Load(), time.Now()
	for range n {
		require.NoError(t, err)
		time.Sleep(apart)
		last := asked
		asked = time.Now()
		err = refresh(store, r)
		if time.Since(last) > late {
			return false
		}
	}
	require.NoError(t, err)
	requests, told := sent.Load()-before, len(states)
	if time.Since(asked) > late {
		return false
	}
	require.LessOrEqual(t, requests, int64(n+3), "requests: refreshes, and looks when hints begin to come")
	require.Zero(t, told)
	require.ErrorIs(t, <-states, kv.ErrVacant)
	require.GreaterOrEqual(t, time.Since(asked), ttl-10*time.Millisecond)
	return true
}
